"""A part of the evidence: a text, or the messages of a conversation."""

from __future__ import annotations

import attrs

from dicast import judging

from .conversation import TranscriptMessage, transcript


@attrs.frozen
class Section:
    """A :class:`dicast.judging.Section` whose *text* may be numbered messages."""

    title: str
    text: str | tuple[tuple[int, TranscriptMessage], ...] | None
    cut: tuple[str, ...] = ()

    def render(self, marks: judging.Marks) -> str:
        """Return the title, and under it the fenced text."""
        text = transcript(self.text) if isinstance(self.text, tuple) else self.text
        return judging.Section(self.title, text, self.cut).render(marks)
