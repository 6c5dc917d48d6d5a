"""Unit of work for a score that another tool recorded: its verdict needs no call and costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from ..classes import frozen
from ..events import EVAL_COMPLETED
from ..values import RECORDED, RecordedScore, Subject
from ..values.rationale import LEDGER, RATIONALE, SCOPE
from .call import Children
from .paid_calls import NOT_CALLED, DirectAnswers, Payload, RunServices

if TYPE_CHECKING:
    from .task import Production

_VERSION = "1"
"""Version of the rubric of recorded scores, which have no other version."""


@frozen
class RecordedUnit:
    """Work of recording the *score* of another tool. *keeps_content* is True if the ledger stores texts such as the reason of the score."""

    score: RecordedScore
    keeps_content: bool

    keeps_texts = False

    @property
    def label(self) -> str:
        """The label of the verdict."""
        return self.score.label

    def planned(self, kind: str) -> Mapping[str, object]:
        """Return the rubric and the kind of judge of the verdict."""
        return {"rubric_id": self.label, "rubric_version": _VERSION, "judge_kind_planned": RECORDED}

    async def judge(
        self,
        run: RunServices,
        subject: Subject,
        eval_id: str,
        children: Children = (),
        parent_eval_id: str | None = None,
        production: Production | None = None,
        ready: DirectAnswers = NOT_CALLED,
    ) -> tuple[str, Payload]:
        """Return the type and the payload of the verdict's event."""
        score, is_model = self.score, self.score.basis == "model"
        name = "\n".join((self.label, score.by if is_model and score.by else ""))
        return EVAL_COMPLETED, {
            "eval_id": eval_id,
            "subject_kind": subject.kind,
            "subject_id": subject.id,
            "judge": self.label,
            "judge_latency_ms": 0,
            "judge_cost_usd": "0",
            "judge_cost_msat": "0",
            "fingerprint": sha256(name.encode()).hexdigest(),
            "judge_pricing_version": None,
            "parent_eval_id": None,
            "score": score.value,
            **({"raw": score.raw} if score.value is None else {}),
            "confidence": 1.0,
            "judge_kind": RECORDED,
            "judge_model": score.by if is_model else None,
            "rubric_id": self.label,
            "rubric_version": _VERSION,
            "signals": self._signals(),
            "scores": (),
            "tier": "truth" if score.basis in ("truth", "human") else "proxy",
            "truth_reason": None,
            "skipped": (),
            "propensity": None,
            "basis": score.basis,
            "calibrated": False,
        }

    def _signals(self) -> dict[str, object]:
        signals: dict[str, object] = {}
        if self.score.text is not None:
            signals["category"] = self.score.text
        if self.score.by is not None:
            signals["by"] = self.score.by
        if self.score.reason is not None and self.keeps_content:
            signals |= {RATIONALE: self.score.reason, SCOPE: LEDGER}
        return signals


def recorded_units(scores: Sequence[RecordedScore], *, keeps_content: bool) -> list[RecordedUnit]:
    """Return a unit for each of *scores*."""
    return [RecordedUnit(score, keeps_content) for score in scores]
