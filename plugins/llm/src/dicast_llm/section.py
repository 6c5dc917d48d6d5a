"""A part of what is judged: a text, or the messages of a conversation."""

from __future__ import annotations

import attrs

from dicast import judging

from .conversation import Said, transcript


@attrs.frozen
class Section:
    """As :class:`dicast.judging.Section`; the *text* may be numbered messages."""

    title: str
    text: str | tuple[tuple[int, Said], ...] | None
    cut: tuple[str, ...] = ()

    def render(self, marks: judging.Marks) -> str:
        """The title, and under it the fenced text."""
        text = transcript(self.text) if isinstance(self.text, tuple) else self.text
        return judging.Section(self.title, text, self.cut).render(marks)
