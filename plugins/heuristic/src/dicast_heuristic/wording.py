"""The assistant's last text, and the test whether it is a refusal or empty."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .reading import Section

REFUSAL, EMPTY = "assistant_refusal_detected", "empty_assistant_response"
KEYS = ("penalties", "refusal")
"""The keys of :class:`Wording` in a rubric."""

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
        """Return the flag of a refusal or an empty *text*, else None; an unknown text has no flag."""
        if text is None:
            return None
        start = _plain(text.strip()[: self.window])[: self.window]
        if not start:
            return EMPTY
        return REFUSAL if any(phrase in start for phrase in self.phrases) else None


def last_text(texts: object) -> str | None:
    """Return the assistant's last text in the mapping *texts*: ``""`` for an empty key, None without a key."""
    if not isinstance(texts, Mapping):
        return None
    values = [str(texts[key] or "") for key in _TEXTS if key in texts]
    return next((text for text in values if text.strip()), "") if values else None


def _plain(text: str) -> str:
    """Return *text* in lower case, with straight apostrophes, and a single blank for any white space."""
    text = text.lower().replace("\u2018", "'").replace("\u2019", "'").replace("\u02bc", "'")
    return " ".join(f".{text}.".split())[1:-1]  # the dots keep blanks at the ends
