"""The rows of a page, column by column: numbers as the tokens of the ledger's JSON, what was said as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import orjson

from dicast import normalize_stop_reason
from dicast.reporting import facts, output_ending

from .baseline import Baseline
from .contents import Contents, texts
from .conversation import Turn
from .marking import METRICS, Marking
from .media import Pictures
from .told import Told

_ORDER = {False: 0, None: 1, True: 2}
"""The order in which labels give a reason: those that did not pass first."""
_REASON = 240
_BESIDE = frozenset({"subject_kind", "subject_id", "judge"})
_TEXTS = frozenset({"details", "feedback", "signals", "error_message"})
_NO_CONTENT = Contents()


@attrs.frozen
class RowColumns:
    """Writes the rows of one run. Without *content* nothing is written that what was judged could be read from."""

    marking: Marking
    baseline: Baseline | None
    content: bool

    def json(self, rows: Sequence[Told], found: Contents) -> dict[str, dict[str, Any]]:
        """The columns of *rows*, of which *found* has the contents, in blocks: the page reads them one after the other."""
        return {"table": self._table(rows), "texts": self._texts(rows, found), "said": self._said(rows)}

    def _texts(self, rows: Sequence[Told], found: Contents) -> dict[str, Any]:
        """What was judged: what is searched, and read when a row is opened."""
        mine = found if self.content else _NO_CONTENT
        each = [texts(mine.of(told.key), told.record if self.content else None) for told in rows]
        names = ("inputs", "outputs", "references", "contexts")
        columns = zip(*(shown for shown, _ in each), strict=True) if each else ((), (), (), ())
        pictures = Pictures()
        media = [pictures.keep(items) or None for _, items in each]
        turns = {session: [_with_keys(turn, pictures) for turn in those] for session, those in mine.turns.items()}
        more = {"media": media, "pictures": pictures.sources} if any(media) or pictures.sources else {}
        return {**dict(zip(names, columns, strict=True)), "conversations": turns, **more}

    def _said(self, rows: Sequence[Told]) -> dict[str, Any]:
        """What was said of each row, as JSON texts, whose numbers keep their tokens."""
        return {
            "ended": [_text(self._ended(told)) for told in rows],
            "records": [_text(_record(told.record)) if self.content and told.record else None for told in rows],
        }

    def _table(self, rows: Sequence[Told]) -> dict[str, Any]:
        """What the table shows, sorts and filters by."""
        return {
            "ids": [told.id for told in rows],
            "kinds": [told.kind for told in rows],
            "sessions": [told.session_id for told in rows],
            "outcomes": [self.marking.outcome(told) for told in rows],
            "bases": [self.marking.basis(told) for told in rows],
            "scores": _tokens(self.marking.score(told) for told in rows),
            "columns": self._columns(rows),
            "reasons": [self._reason(told) for told in rows],
            "was": None if self.baseline is None else _tokens(self.baseline.score(told) for told in rows),
            "flips": None if self.baseline is None else [self._flip(told) for told in rows],
        }

    def _columns(self, rows: Sequence[Told]) -> list[dict[str, str]]:
        values = [self.marking.values(told) for told in rows]
        labels = dict.fromkeys(label for one in values for label in one)
        order = [label for label in (*self.marking.metrics, *self.marking.judges) if label in labels]
        return [
            {"label": label, "values": _tokens(one.get(label) for one in values)}
            for label in dict.fromkeys([*order, *labels])
        ]

    def _flip(self, told: Told) -> str:
        return "" if self.baseline is None else self.baseline.flip(told)

    def _reason(self, told: Told) -> str:
        if not self.content:
            return next((kind for _, kind in told.failures()), "")
        ending = output_ending(told.record or {})
        is_bad = normalize_stop_reason(ending) in ("max_tokens", "refusal")
        text = f"[output ended: {ending}] {self._why(told)}" if is_bad else self._why(told)
        return " ".join(text.split())[:_REASON]

    def _why(self, told: Told) -> str:
        """Why the subject has no score, or the one it has: the first of those below their line that says why."""
        for label in sorted(self.marking.asked(told), key=lambda label: _ORDER[self.marking.passes(told, label)]):
            ended = told.ended[label]
            if "failure_mode" in ended:
                return f"{ended['failure_mode']}: {ended.get('error_message') or ''}"
            if ended["score"] != 1 and (why := self._of_verdict(label, ended)):
                return why
        return ""

    def _of_verdict(self, label: str, ended: Mapping[str, Any]) -> str:
        if label == METRICS:
            scores = sorted(ended.get("scores", ()), key=lambda one: (one["value"] is None, one["value"] or 0.0))
            said = (f"{one['metric']}: {one['details']}" for one in scores if one.get("details") and one["value"] != 1)
            return next(said, "")
        signals = ended.get("signals") or {}
        rationale = signals.get("rationale_redacted")
        return (
            str(rationale) if rationale else ", ".join(map(str, signals.get("flags_negative") or ())) or facts(signals)
        )

    def _ended(self, told: Told) -> dict[str, Any]:
        return {label: self._kept(payload) for label, payload in told.ended.items()}

    def _kept(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        dropped = _BESIDE if self.content else _BESIDE | _TEXTS
        kept = {name: value for name, value in payload.items() if name not in dropped}
        if not self.content and "scores" in kept:
            kept["scores"] = [{n: value for n, value in one.items() if n not in _TEXTS} for one in kept["scores"]]
        return kept


def _with_keys(turn: Turn, pictures: Pictures) -> Turn:
    """Return *turn* with keys in place of the contents of its pictures."""
    if not any("media" in message for message in turn["messages"]):
        return turn
    messages = [
        {**message, "media": pictures.keep(message["media"])} if "media" in message else message
        for message in turn["messages"]
    ]
    return {**turn, "messages": messages}


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "row"}


def _text(value: object) -> str:
    return orjson.dumps(value).decode()


def _tokens(values: Iterable[float | None]) -> str:
    """Numbers as the tokens that the document has them with, between commas; nothing for None."""
    return ",".join("" if value is None else orjson.dumps(value).decode() for value in values)
