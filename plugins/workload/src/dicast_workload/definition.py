"""The definition of a workload: the expectations of its runs, and the way they are judged."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches

import attrs

from dicast import Problem

from .documents import Document, Fault
from .sections import Section

KEYS = ("name", "description", "suite_version", "signal_strength", "turns", "expect", "evaluate")
TURN_KEYS = ("prompt", "expect")
OF_TURN = ("min_tool_calls", "max_tool_calls", "contains_substring", "stop_reason")
OF_RUN = ("max_total_cost_usd", "min_llm_calls", "max_hard_failures", "min_delegate_calls")
EVALUATE = (
    "rubric",
    "expect_substring_in_final_response",
    "llm_judge_model",
    "weight_per_turn",
    "grounding_tokens",
    "forbidden_grounding",
    "partial_credit",
)
_LIKE = 0.75
"""How like one of ours a key of the harness's own may be, as a ratio; one more like it is taken for a misspelling."""


@attrs.frozen
class TurnExpectation:
    """The expectations of one turn; None expects nothing."""

    min_tool_calls: int | None = None
    max_tool_calls: int | None = None
    contains_substring: str | None = None
    stop_reason: str | None = None


@attrs.frozen
class RunExpectation:
    """The expectations of a whole run. *every* holds for each turn, except its text, which the final text must have."""

    max_total_cost_usd: Decimal | None = None
    min_llm_calls: int | None = None
    max_hard_failures: int | None = None
    min_delegate_calls: int | None = None
    every: TurnExpectation = TurnExpectation()


@attrs.frozen
class Definition:
    """One workload. *evaluate* is its block, checked and unchanged; *turns* are the expectations of each turn, in order."""

    name: str
    file: str
    prompts: tuple[str, ...] = ()
    turns: tuple[TurnExpectation, ...] = ()
    expect: RunExpectation = RunExpectation()
    evaluate: Mapping[str, object] = attrs.field(factory=dict)
    suite_version: object = None
    signal_strength: str = "high"

    @classmethod
    def read(cls, document: Document, problems: list[Problem]) -> Definition | None:
        """Read a workload's file. Its faults are added to *problems*, and the result is None."""
        faults: list[Fault] = []
        top = Section((), document.data, faults)
        refuse_misspelt(top, KEYS, (), faults)
        name = top.text("name")
        if not name and not faults:
            faults.append(Fault(("name",), "the workload needs a 'name', which its runs call it by"))
        top.text("description")
        turns = top.sections("turns")
        definition = cls(
            name or "",
            document.file,
            tuple(filter(None, (turn.text("prompt") for turn in turns))),
            tuple(_turn(turn, number, faults) for number, turn in enumerate(turns)),
            _run(top.section("expect")),
            _evaluate(top.section("evaluate")),
            top.data.get("suite_version"),
            top.choice("signal_strength", ("high", "marginal")) or "high",
        )
        reported = map(document.problem, faults)
        problems += [problem for problem in reported if problem.path not in document.unread]
        return None if faults or document.unread else definition


def refuse_misspelt(section: Section, keys: tuple[str, ...], path: tuple[str | int, ...], faults: list[Fault]) -> None:
    """Refuse a key that looks like a misspelled known key; other keys belong to the harness."""
    like = {key: get_close_matches(key, keys, 1, _LIKE) for key in section.data if key not in keys}
    faults += [
        Fault((*path, key), f"unknown key {key!r}", key, near[0], at_key=True) for key, near in like.items() if near
    ]


def _turn(turn: Section, number: int, faults: list[Fault]) -> TurnExpectation:
    refuse_misspelt(turn, TURN_KEYS, ("turns", number), faults)
    expect = turn.section("expect")
    expect.only(OF_TURN, "expect")
    return _of_turn(expect)


def _of_turn(expect: Section) -> TurnExpectation:
    return TurnExpectation(
        expect.count("min_tool_calls"),
        expect.count("max_tool_calls"),
        expect.text("contains_substring"),
        expect.text("stop_reason"),
    )


def _run(expect: Section) -> RunExpectation:
    expect.only((*OF_RUN, *OF_TURN), "expect")
    return RunExpectation(
        expect.amount("max_total_cost_usd"),
        expect.count("min_llm_calls"),
        expect.count("max_hard_failures"),
        expect.count("min_delegate_calls"),
        _of_turn(expect),
    )


def _evaluate(block: Section) -> Mapping[str, object]:
    """Return the block unchanged, after the checks that heuristic/workload has for its options."""
    block.only(EVALUATE, "evaluate")
    block.choice("rubric", ("heuristic", "llm", "hybrid"))
    block.text("expect_substring_in_final_response")
    block.text("llm_judge_model")
    block.number("weight_per_turn")
    block.texts("grounding_tokens")
    block.texts("forbidden_grounding")
    credit = block.section("partial_credit")
    credit.only(("enabled", "criterion", "map"), "partial_credit")
    credit.flag("enabled")
    credit.choice("criterion", ("test_pass_count_ratio",))
    credit.choice("map", ("linear", "stepped"))
    return block.data
