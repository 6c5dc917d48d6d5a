"""What the assistant said last, and whether that is a refusal or nothing at all."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .reading import Section

REFUSAL, EMPTY = "assistant_refusal_detected", "empty_assistant_response"
KEYS = ("penalties", "refusal")
"""What stands in a rubric for :class:`Wording`."""

_TEXTS = ("final_response_text", "assistant_response_text")  # two names of one key


@attrs.frozen
class Wording:
    """The *penalties*, factors by flag, and the refusals: *phrases* in the first *window* characters."""

    penalties: Mapping[str, float]
    window: int
    phrases: tuple[str, ...]

    @classmethod
    def read(cls, content: Section) -> Wording:
        """Read the figures from a rubric's *content*."""
        penalties = content.section("penalties", (REFUSAL, EMPTY))
        refusal = content.section("refusal", ("window", "phrases"))
        return cls(
            {name: penalties.number(name, 1) for name in (REFUSAL, EMPTY)},
            refusal.count("window"),
            tuple(_plain(phrase) for phrase in refusal.texts("phrases")),
        )

    def fault(self, text: str | None) -> str | None:
        """The flag of what is wrong with *text*; nothing is wrong with a text that is not known."""
        if text is None:
            return None
        start = _plain(text.strip()[: self.window])[: self.window]
        if not start:
            return EMPTY
        return REFUSAL if any(phrase in start for phrase in self.phrases) else None


def last_text(texts: object) -> str | None:
    """The assistant's last text in the mapping *texts*, ``""`` where its key holds nothing, None where there is no key."""
    if not isinstance(texts, Mapping):
        return None
    given = [str(texts[key] or "") for key in _TEXTS if key in texts]
    return next((text for text in given if text.strip()), "") if given else None


def _plain(text: str) -> str:
    """Lower case, with straight apostrophes, and one blank for any number and kind of them."""
    text = text.lower().replace("\u2018", "'").replace("\u2019", "'").replace("\u02bc", "'")
    return " ".join(f".{text}.".split())[1:-1]  # the dots keep blanks at the ends
