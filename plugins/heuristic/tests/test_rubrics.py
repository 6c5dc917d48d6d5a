"""The errors for a wrong rubric."""

from __future__ import annotations

import re

import pytest
import yaml

import dicast
from dicast import ConfigError, Rubric
from dicast_heuristic import Session, ToolCycle, Turn, Workload
from dicast_heuristic.places import place_of

TURN = dicast.rubric("turn-heuristic-v1")
JUDGES = {
    "turn-heuristic-v1": Turn,
    "tool-cycle-heuristic-v1": ToolCycle,
    "session-aggregate-v1": Session,
    "workload-heuristic-v1": lambda rubric: Workload(figures=rubric),
}


def edited(pattern, replacement, rubric=TURN):
    """*rubric* as a file that somebody has edited."""
    text, count = re.subn(pattern, replacement, rubric.text, flags=re.MULTILINE)
    assert count
    return Rubric(rubric.id, rubric.version, text, yaml.safe_load(text))


def refused(rubric, judge=Turn):
    with pytest.raises(ConfigError) as error:
        judge(rubric)
    return [problem.message for problem in error.value.problems], error.value.problems


def line(text, start):
    return next(number for number, text_ in enumerate(text.splitlines(), 1) if text_.strip().startswith(start))


@pytest.mark.parametrize(
    ("pattern", "replacement", "reason"),
    [
        (
            r"^max_tool_calls: 20",
            'max_tool_calls: "20"',
            "max_tool_calls is '20', it must be a whole number, 0 or more",
        ),
        (r"^  window: 160", "  window: 1.5", "refusal.window is 1.5, it must be a whole number, 0 or more"),
        (r"no_llm_failure: 0.25", "no_llm_failure: -1", "weights.no_llm_failure is -1, it must be a number, 0 or more"),
        (
            r"no_llm_failure: 0.25",
            "no_llm_failure: true",
            "weights.no_llm_failure is True, it must be a number, 0 or more",
        ),
        (r"response: 0.4", "response: 4", "penalties.empty_assistant_response is 4, it must be a number from 0 to 1"),
        (
            r"thumbs_up: 0.51",
            "thumbs_up: 0.4",
            "feedback.bounds.explicit_thumbs_up is 0.4, it must be a number above 0.5",
        ),
        (
            r"^clean_stop.*",
            "clean_stop_reasons: end_turn",
            "clean_stop_reasons is 'end_turn', it must be a list of texts",
        ),
    ],
)
def test_wrong_value_is_told_with_its_place(pattern, replacement, reason):
    rubric = edited(pattern, replacement)
    (message,), _ = refused(rubric)
    row, column = map(int, message.split(":")[1:3])
    assert message.startswith(f"{rubric.id}:{row}:{column}: the rubric's {reason}")
    written = rubric.text.splitlines()[row - 1]
    assert written[: column - 1].rstrip().endswith(":")
    assert replacement.strip() in written


def test_unknown_key_is_told_where_it_is_with_the_nearest():
    rubric = edited("no_llm_failure", "no-lm-failure")
    (unknown, missing), problems = refused(rubric)
    assert unknown == f"{rubric.id}:{line(rubric.text, 'no-lm')}:3: unknown key 'no-lm-failure' in the rubric"
    assert problems[0].hint == "no_llm_failure"
    assert missing.endswith("the rubric's weights.no_llm_failure is missing; it is a number, 0 or more")


def test_section_that_is_missing_is_told_once():
    rubric = edited("^penalties:", "penalty:")
    messages, problems = refused(rubric)
    assert [problem.path for problem in problems] == ["penalty", "penalties"]
    assert messages[1].endswith("the rubric's penalties is missing; it is a mapping")
    (message,), _ = refused(edited(r"^  bounds:\n(    .*\n)+", "  bounds: 3\n"))
    assert message.endswith("the rubric's feedback.bounds is 3, it must be a mapping")


def test_confidence_needs_a_last_line_that_always_holds():
    (message,), _ = refused(edited(r"- \{value: 0.35\}", "- {max_negative: 3, value: 0.35}"))
    assert message.endswith("it must be a line without conditions, so that one always holds")
    (message,), _ = refused(edited(r"- \{max_negative: 0, value: 0.7\}", "- 0.7"))
    assert message.endswith("the rubric's confidence[1] is 0.7, it must be a mapping")


@pytest.mark.parametrize("id", JUDGES)
@pytest.mark.parametrize("other", JUDGES)
def test_rubric_of_another_judge_is_told_from_ones_own(id, other):
    if id == other:
        JUDGES[id](dicast.rubric(id))
        return
    messages, _ = refused(dicast.rubric(other), JUDGES[id])
    assert len(messages) > 1 or "is for another judge" in messages[0]


def test_text_for_a_model_has_no_figures():
    (message,), _ = refused(dicast.rubric("turn-llm-v1"))
    assert message == "the rubric 'turn-llm-v1' has no figures; it must be YAML"


def test_figures_that_never_were_a_text_are_told_without_a_place(changed):
    (message,), _ = refused(attrs_text(changed("turn-heuristic-v1", max_tool_calls="many"), ""))
    assert message.startswith("the rubric's max_tool_calls is 'many'")


def attrs_text(rubric, text):
    return Rubric(rubric.id, rubric.version, text, rubric.data)


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [("a", False, (1, 4)), ("a", True, (1, 1)), ("b.c", False, (3, 6)), ("b.c", True, (3, 3)), ("b.x", False, (3, 3)),
     ("d[1].e", False, (6, 9)), ("d[9]", False, (5, 3)), ("x", False, (1, 1)), ("", False, (1, 1))],
)  # fmt: skip
def test_place_is_that_of_the_value_or_the_key(path, key, place):
    assert place_of("a: 1\nb:\n  c: 2\nd:\n  - 1\n  - {e: 2}\n", path, key=key) == place


@pytest.mark.parametrize("text", ["", "a: [", "# nothing"])
def test_what_is_no_yaml_has_no_place(text):
    assert place_of(text, "a") is None
