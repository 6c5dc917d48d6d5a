"""The judge ``heuristic/workload``: scores a run of a workload by its turns and the expectations of the workload's author."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Literal

import attrs

from dicast import ConfigError, Failure, Judgment, Rubric, Subject, Verdict, Within, mean

from .block import check_block, options
from .counts import Counts
from .reading import open_rubric
from .tally import Tally
from .wording import KEYS, Wording, last_text

MOST_BLOCKS = 1000
"""Maximum number of cached blocks of workloads."""


@attrs.frozen
class Figures:
    """Figures of a rubric."""

    no_turns: float
    assertions_failed: float
    substring_missing: float
    wording: Wording
    confidence: Mapping[str, float]

    @classmethod
    def read(cls, rubric: object) -> Figures:
        """Read the figures of *rubric*.

        :raises ConfigError: with every fault of the rubric.
        """
        content, problems = open_rubric(rubric, ("no_turns", "factors", *KEYS, "confidence"))
        factors = content.section("factors", ("assertions_failed", "substring_missing"))
        names = ("turns_and_checks", "turns", "other")
        confidence = content.section("confidence", names)
        figures = cls(
            content.number("no_turns", 1),
            factors.number("assertions_failed", 1),
            factors.number("substring_missing", 1),
            Wording.read(content),
            {name: confidence.number(name, 1) for name in names},
        )
        if problems:
            raise ConfigError(problems)
        return figures


@attrs.frozen
class PartialCredit:
    """Credit for a share of passed tests: *criterion* is the source of the ratio, *map* its mapping to the credit."""

    enabled: bool = False
    criterion: Literal["test_pass_count_ratio"] = "test_pass_count_ratio"
    map: Literal["linear", "stepped"] = "linear"

    def credit(self, ratio: float) -> float:
        """Return the credit for *ratio*, in [0, 1]: the ratio, or the nearest quarter, rounding half to even."""
        return ratio if self.map == "linear" else round(ratio * 4) / 4


def _texts(_instance: object, attribute: attrs.Attribute[Any], value: tuple[str, ...] | None) -> None:
    if not all(value or ()):
        raise ValueError(f"{attribute.name} must be a list of texts that are not empty")


@attrs.frozen
class Workload:
    """Score a workload's run by its turns, its assertions, and its expected final text.

    The options are the keys of a workload's ``evaluate:`` block. The keys of a block ``evaluate`` in the context override the options
    of the same name, with null for a default, and are recorded in the signals. The output is the final text. ``per_turn_scores``,
    ``assertion_failures`` and ``assertions_checked`` are in the context.

    :param rubric: heuristic, llm or hybrid: the judges of the workload. This judge needs no model; put it before llm/judge in
        hybrid/cascade, which follows the block.
    :param expect_substring_in_final_response: a text that the final text must have, in any case.
    :param llm_judge_model: the model for llm/judge.
    :param weight_per_turn: the weight of the mean of the turns relative to the expected text, the partial credit and the grounding. If
        the turns have the weight 0 and nothing else counts, the score is that without turns.
    :param grounding_tokens: texts of a well-founded answer; the share of present texts counts.
    :param forbidden_grounding: texts of an invented answer; the share of absent texts counts.
    :param partial_credit: {enabled, criterion: test_pass_count_ratio, map: linear or stepped}: the share of passed tests in the final
        text counts, in place of the expected text.
    :param figures: the rubric with the figures, by id or as a YAML file.
    """

    accepts = ("workload",)
    judge_kind = "heuristic"
    needs_output = False

    rubric: Literal["heuristic", "llm", "hybrid"] | None = "heuristic"
    expect_substring_in_final_response: str | None = None
    llm_judge_model: str | None = None
    weight_per_turn: float | None = attrs.field(default=1.0, validator=Within(0, inf, "0 or more"))
    grounding_tokens: tuple[str, ...] | None = attrs.field(default=None, validator=_texts)
    forbidden_grounding: tuple[str, ...] | None = attrs.field(default=None, validator=_texts)
    partial_credit: PartialCredit | None = None
    # The kernel replaces the id by the rubric.
    figures: Rubric = attrs.field(default="workload-heuristic-v1")  # type: ignore[assignment]  # an id
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)
    _by_block: dict[str, Workload] = attrs.field(init=False, factory=dict, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.figures))

    def rubric_for(self, kind: str) -> Rubric:
        """Return the rubric of a workload's verdict."""
        return self.figures

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the judgment of the workload by its block, if it has one; an invalid block fails with ``rubric_invalid``."""
        block = subject.context.get("evaluate")
        if block is None:
            return self._judge(subject)
        try:
            judge = self._by_block.get(repr(block)) or self._with(block)
        except ConfigError as error:
            return Failure("rubric_invalid", f"workload {subject.id}: {error}")
        answer = judge._judge(subject)  # noqa: SLF001  # an object of this class
        if isinstance(answer, Failure):
            return answer
        return attrs.evolve(answer, signals={**answer.signals, "evaluate": block})

    def _with(self, block: object) -> Workload:
        """Return this judge with the options of *block*. It is cached, because runs share the few blocks of their suite."""
        values = options(Workload, check_block(block))
        credit = values.get("partial_credit")
        if credit is not None:
            values["partial_credit"] = PartialCredit(**options(PartialCredit, credit))
        if len(self._by_block) >= MOST_BLOCKS:
            self._by_block.clear()
        judge = self._by_block[repr(block)] = attrs.evolve(self, **values)
        return judge

    def _judge(self, subject: Subject) -> Judgment | Failure:
        """Return the judgment by the options; invalid scores of turns are refused."""
        context, final_text = subject.context, _final_text(subject)
        if fault := _fault(context):
            return Failure("missing_input", f"workload {subject.id}: {fault}")
        turns, text = context.get("per_turn_scores") or (), final_text or ""
        assert isinstance(turns, list | tuple)  # checked by _fault
        weight = 1.0 if self.weight_per_turn is None or not turns else self.weight_per_turn
        average = mean(turns) if turns and weight else self._figures.no_turns
        tally = Tally(average, average)
        self._assertions(tally, context)
        if self.partial_credit is not None and self.partial_credit.enabled:
            _credit(tally, self.partial_credit, text)
        else:
            self._substring(tally, text)
        _ground(tally, text, self.grounding_tokens or (), self.forbidden_grounding or ())
        if weight != 1.0 and (weight or tally.share < 1):
            tally.weigh(weight)
        self._penalty(tally, final_text)
        flags = {"flags": tally.positive, "flags_negative": tally.negative}
        signals = {**flags, **tally.signals, **self._block_signals(len(turns))}
        basis = "turns_and_checks" if turns and tally.checked else "turns" if turns else "other"
        confidence = self._figures.confidence[basis]
        return Judgment(tally.score, confidence, "heuristic", signals=signals, rubric=self.figures)

    def _block_signals(self, turns: int) -> dict[str, object]:
        """Return the signals that depend only on the block and the number of *turns*."""
        rubric = {} if self.rubric in (None, "heuristic") else {"rubric_requested": self.rubric}
        weight = 1.0 if self.weight_per_turn is None else self.weight_per_turn
        return {"turn_count": turns, "weight_per_turn": weight, **rubric}

    def _assertions(self, tally: Tally, context: Mapping[str, object]) -> None:
        failed = bool(context.get("assertion_failures"))
        tally.checked = failed or bool(context.get("assertions_checked"))
        tally.flag(f"workload_assertions_{'failed' if failed else 'passed'}", good=not failed)
        if failed:
            tally.score *= self._figures.assertions_failed
            tally.turns = tally.score

    def _substring(self, tally: Tally, text: str) -> None:
        expected = self.expect_substring_in_final_response
        if not expected:
            return
        present = expected.casefold() in text.casefold()
        if present:
            tally.average(1.0)
        else:
            tally.miss(self._figures.substring_missing)
        tally.flag(f"workload_substring_{'present' if present else 'missing'}", good=present)
        tally.signals["substring_present"] = present
        tally.checked = True

    def _penalty(self, tally: Tally, text: str | None) -> None:
        wording = self._figures.wording
        if fault := wording.fault(text):
            tally.score *= wording.penalties[fault]
            tally.flag(f"workload_{fault}", good=False)


def _final_text(subject: Subject) -> str | None:
    """Return the output, else the final text in the context, else None."""
    return last_text(subject.context) if subject.output is None else subject.text


def _fault(context: Mapping[str, object]) -> str | None:
    """Return the fault of the turns or assertions in *context*, or None."""
    scores = context.get("per_turn_scores")
    if scores is not None and not (isinstance(scores, list | tuple) and all(map(_is_score, scores))):
        return f"per_turn_scores must be a list of numbers from 0 to 1, not {scores!r:.100}"
    for name in ("assertion_failures", "assertions_checked"):
        value = context.get(name)
        if not isinstance(value, list | tuple | int | None):
            return f"{name} must be a list or a number, not {value!r:.100}"
    return None


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _credit(tally: Tally, rule: PartialCredit, text: str) -> None:
    """Average the score with the credit for passed tests."""
    counts = Counts.read(text)
    credit = 0.0 if counts is None else rule.credit(counts.ratio)
    name = "no_test_signal" if counts is None else "zero" if not credit else "full" if credit == 1 else "partial"
    tally.average(credit)
    tally.flag(f"partial_credit_{name}", good=credit > 0)
    tally.checked = tally.checked or counts is not None
    tally.signals |= {
        "substring_present": None,
        "partial_credit_score": credit,
        "partial_credit_ratio": None if counts is None else counts.ratio,
        "partial_credit_passed": None if counts is None else counts.passed,
        "partial_credit_total": None if counts is None else counts.total,
        "partial_credit_criterion": rule.criterion,
        "partial_credit_map": rule.map,
        "partial_credit_test_signal_found": counts is not None,
    }


def _ground(tally: Tally, text: str, tokens: Sequence[str], forbidden: Sequence[str]) -> None:
    """Average the score with the grounding of *text*, if there are any tokens."""
    if not tokens and not forbidden:
        return
    folded = text.casefold()
    present = [token for token in tokens if token.casefold() in folded]
    missing = [token for token in tokens if token not in present]
    invented = [token for token in forbidden if token.casefold() in folded]
    shares = [len(present) / len(tokens)] if tokens else []
    shares += [1 - len(invented) / len(forbidden)] if forbidden else []
    grounding = mean(shares)
    tally.average(grounding)
    if present:
        tally.flag("workload_grounding_tokens_present", good=True)
    if missing:
        tally.flag("workload_grounding_tokens_missing", good=False)
    if forbidden:
        tally.flag(f"workload_forbidden_grounding_{'present' if invented else 'clean'}", good=not invented)
    tally.signals |= {
        "workload_grounding_score": grounding,
        "grounding_tokens_present": present,
        "grounding_tokens_missing": missing,
        "forbidden_grounding_present": invented,
    }
    tally.checked = True
