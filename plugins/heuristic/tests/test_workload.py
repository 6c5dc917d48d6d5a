from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Failure, Subject
from dicast.testing import run_pipeline
from dicast_heuristic import PartialCredit, Workload
from dicast_heuristic.counts import Counts

ID = "workload-heuristic-v1"
FIGURES = dicast.rubric(ID)
SUBSTRING = "expect_substring_in_final_response"
LINEAR, STEPPED = PartialCredit(enabled=True), PartialCredit(enabled=True, map="stepped")


def judge(text="done", turns=(1.0,), *, failures=(), checked=0, figures=FIGURES, **options):
    context = {"per_turn_scores": list(turns), "assertion_failures": list(failures), "assertions_checked": checked}
    return Workload(figures=figures, **options).judge(Subject("workload", "w", output=text, context=context), ())


def judged(*args, **options):
    verdict_ = judge(*args, **options)
    return round(verdict_.score, 12), verdict_.confidence


def negative(*args, **options):
    return judge(*args, **options).signals["flags_negative"]


def test_expected_text_that_is_there_raises_the_score():
    assert judged("It is DONE.", [0.9, 0.85], **{SUBSTRING: "done"}) == (0.9375, 0.8)


def test_expected_text_that_is_missing_halves_the_score():
    verdict_ = judge("nothing", **{SUBSTRING: "done"})
    assert (verdict_.score, verdict_.confidence) == (0.5, 0.8)
    assert verdict_.signals["flags_negative"] == ["workload_substring_missing"]
    assert verdict_.signals["substring_present"] is False


def test_failed_assertion_and_an_empty_text():
    assert judged("", failures=["max_tool_calls"]) == (0.2, 0.8)
    assert negative("", failures=["x"]) == ["workload_assertions_failed", "workload_empty_assistant_response"]


@pytest.mark.parametrize(
    ("turns", "checked", "score", "confidence"),
    [([0.6, 0.8], 0, 0.7, 0.6), ([0.6, 0.8], 3, 0.7, 0.8), ([], 0, 0.5, 0.4), ([], 3, 0.5, 0.4)],
)
def test_turns_and_assertions_alone(turns, checked, score, confidence):
    verdict_ = judge(turns=turns, checked=checked)
    assert (round(verdict_.score, 12), verdict_.confidence) == (score, confidence)
    assert verdict_.signals["flags"] == ["workload_assertions_passed"]


TOKENS, FORBIDDEN = ["Alpha", "policy=", "Beta", "Gamma"], ["Ghost", "Phantom", "Spectre", "Shade"]


def test_grounding_is_the_mean_of_what_is_there_and_what_is_not():
    verdict_ = judge("alpha and POLICY=", grounding_tokens=TOKENS, forbidden_grounding=FORBIDDEN)
    assert (verdict_.score, verdict_.confidence) == (0.875, 0.8)
    assert verdict_.signals["workload_grounding_score"] == 0.75
    assert verdict_.signals["grounding_tokens_present"] == ["Alpha", "policy="]
    assert verdict_.signals["grounding_tokens_missing"] == ["Beta", "Gamma"]
    assert verdict_.signals["forbidden_grounding_present"] == []
    assert verdict_.signals["flags"][1:] == ["workload_grounding_tokens_present", "workload_forbidden_grounding_clean"]
    assert verdict_.signals["flags_negative"] == ["workload_grounding_tokens_missing"]


@pytest.mark.parametrize(
    ("text", "options", "grounding"),
    [
        ("clean", {"forbidden_grounding": FORBIDDEN}, 1.0),
        ("a GHOST", {"forbidden_grounding": FORBIDDEN}, 0.75),
        ("alpha", {"grounding_tokens": TOKENS}, 0.25),
        ("ghost phantom spectre shade", {"grounding_tokens": TOKENS, "forbidden_grounding": FORBIDDEN}, 0.0),
    ],
)
def test_either_list_may_stand_alone(text, options, grounding):
    verdict_ = judge(text, **options)
    assert verdict_.signals["workload_grounding_score"] == grounding
    assert verdict_.score == (1 + grounding) / 2


def test_without_lists_there_is_no_grounding():
    assert "workload_grounding_score" not in judge(grounding_tokens=(), forbidden_grounding=None).signals


@pytest.mark.parametrize(
    ("text", "score", "flag"),
    [
        ("PASS 2/4", 0.75, "partial_credit_partial"),
        ("FAIL 0/4", 0.5, "partial_credit_zero"),
        ("PASS 4/4", 1.0, "partial_credit_full"),
        ("1 passed, 3 failed in 0.45s", 0.625, "partial_credit_partial"),
        ("I am done.", 0.5, "partial_credit_no_test_signal"),
    ],
)
def test_share_of_passed_tests_counts(text, score, flag):
    verdict_ = judge(text, partial_credit=LINEAR)
    assert verdict_.score == score
    assert flag in verdict_.signals["flags" if score > 0.5 else "flags_negative"]
    assert verdict_.confidence == (0.6 if flag.endswith("signal") else 0.8)


@pytest.mark.parametrize(("text", "credit"), [("PASS 1/8", 0.0), ("PASS 3/8", 0.5), ("PASS 12/16", 0.75), ("5/8", 0.0)])
def test_stepped_credit_is_the_nearest_quarter(text, credit):
    assert judge(text, partial_credit=STEPPED).signals["partial_credit_score"] == credit


def test_partial_credit_takes_the_place_of_the_expected_text():
    verdict_ = judge("PASS 2/4", partial_credit=LINEAR, **{SUBSTRING: "absent"})
    assert verdict_.score == 0.75
    assert {name: value for name, value in verdict_.signals.items() if name.startswith(("partial", "substring"))} == {
        "substring_present": None,
        "partial_credit_score": 0.5,
        "partial_credit_ratio": 0.5,
        "partial_credit_passed": 2,
        "partial_credit_total": 4,
        "partial_credit_criterion": "test_pass_count_ratio",
        "partial_credit_map": "linear",
        "partial_credit_test_signal_found": True,
    }
    assert judge("PASS 2/4", partial_credit=PartialCredit(), **{SUBSTRING: "absent"}).score == 0.5


@pytest.mark.parametrize(
    ("text", "passed", "total"),
    [
        ("PASS 1/4 then fail 3 / 4", 3, 4),
        ("PASS 2/4\n9 passed, 1 failed", 2, 4),
        ("FAIL 5/4", 5, 4),
        ("2 passed, 1 failed, 1 error, 5 skipped", 2, 4),
        ("2 Passed ... 3 passed, 2 errors", 3, 5),
        ("4 failed", 0, 4),
    ],
)
def test_last_counts_are_read(text, passed, total):
    assert Counts.read(text) == Counts(passed, total)
    assert Counts(5, 4).ratio == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PASS 0/0",
        "0 passed",
        "5 skipped",
        "BYPASS 2/4",
        "PASS x/4",
        "passed 3",
        f"{'9' * 5000} passed",
        "PASS 1.5/2",
    ],
)
def test_text_without_counts_has_no_signal(text):
    assert Counts.read(text) is None


def test_all_steps_in_their_order():
    text = "I cannot help. PASS 1/4. Alpha"
    verdict_ = judge(text, [0.8], failures=["x"], partial_credit=LINEAR, grounding_tokens=["alpha"])
    assert verdict_.score == pytest.approx(((0.8 * 0.5 + 0.25) / 2 + 1.0) / 2 * 0.5)
    assert verdict_.signals["flags_negative"][-1] == "workload_assistant_refusal_detected"


def test_text_may_be_in_the_context_and_a_missing_one_is_not_punished():
    def of(**context):
        subject = Subject("workload", "w", context={"per_turn_scores": [1.0], **context})
        return Workload(figures=FIGURES).judge(subject, ()).score

    assert of() == 1.0
    assert of(final_response_text="done") == of(assistant_response_text="done") == 1.0
    assert of(assistant_response_text="I refuse to") == 0.5
    assert of(final_response_text=None) == 0.4


@pytest.mark.parametrize(
    "context",
    [
        {"per_turn_scores": [1.5]},
        {"per_turn_scores": ["1"]},
        {"per_turn_scores": [True]},
        {"per_turn_scores": [float("nan")]},
        {"per_turn_scores": 0.5},
        {"assertion_failures": "none"},
        {"assertions_checked": {}},
    ],
)
def test_context_that_holds_something_else_is_a_failure(context):
    failure_ = Workload(figures=FIGURES).judge(Subject("workload", "w7", output="x", context=context), ())
    assert isinstance(failure_, Failure)
    assert failure_.kind == "missing_input"
    assert next(iter(context)) in failure_.message
    assert "w7" in failure_.message


def test_block_is_kept_among_the_signals():
    verdict_ = judge(rubric="hybrid", weight_per_turn=2.0, llm_judge_model="m")
    assert (
        verdict_.signals["weight_per_turn"],
        verdict_.signals["rubric_requested"],
        verdict_.signals["turn_count"],
    ) == (
        2,
        "hybrid",
        1,
    )
    assert "rubric_requested" not in judge().signals
    assert judge(weight_per_turn=None, rubric=None).signals == judge().signals
    assert (verdict_.score, verdict_.judge_kind, verdict_.rubric) == (1.0, "heuristic", FIGURES)


WEIGHED = [
    ({}, 0.8),  # nothing else counts
    ({SUBSTRING: "here"}, (2 * 0.8 + 1) / 3),
    ({SUBSTRING: "gone"}, 2 * 0.8 / 3),
    ({"grounding_tokens": ["here", "gone"]}, (2 * 0.8 + 0.5) / 3),
    ({SUBSTRING: "here", "grounding_tokens": ["gone"]}, (2 * 0.25 * 0.8 + 0.25) / (2 * 0.25 + 0.75)),
]


@pytest.mark.parametrize(("options", "expected"), WEIGHED)
def test_weight_per_turn_weighs_the_mean_of_the_turns_against_all_the_rest(options, expected):
    def score(weight, turns=(0.7, 0.9), **context):
        context = {"per_turn_scores": list(turns), **context}
        subject = Subject("workload", "w", output="It is here.", context=context)
        return Workload(figures=FIGURES, weight_per_turn=weight, **options).judge(subject, ()).score

    assert score(2.0) == pytest.approx(expected)
    assert score(1e308) == pytest.approx(0.8)
    assert score(2.0, turns=()) == score(1.0, turns=())
    assert score(0.0, turns=(0.1,)) == score(0.0, turns=(0.9,))  # they do not count
    assert score(1.0, assertion_failures=["x"]) == pytest.approx(score(1.0, turns=(0.35, 0.45)))
    assert score(2.0, assertion_failures=["x"]) == pytest.approx(score(2.0, turns=(0.35, 0.45)))


@given(st.floats(0, 1), st.floats(0, 1e9), st.sampled_from([case[0] for case in WEIGHED]))
def test_a_weighed_score_is_bounded_and_lies_on_the_turns_side_of_the_score_without_them(mean, weight, options):
    subject = Subject("workload", "w", output="It is here.", context={"per_turn_scores": [mean]})
    weighed, plain, rest = (
        Workload(figures=FIGURES, weight_per_turn=other_, **options).judge(subject, ()).score
        for other_ in (weight, 1.0, 0.0)
    )
    assert 0 <= weighed <= 1
    if weight == 1:
        assert weighed == plain
    elif weight and rest != weighed and options:
        assert min(rest, mean) - 1e-9 <= weighed <= max(rest, mean) + 1e-9


def test_all_figures_come_from_the_rubric(changed):
    figures = changed(
        ID,
        no_turns=0.4,
        factors={"assertions_failed": 0.9, "substring_missing": 0.1},
        penalties__assistant_refusal_detected=0.2,
        confidence={"turns_and_checks": 0.3, "turns": 0.2, "other": 0.1},
    )
    verdict_ = judge("I refuse to", [], failures=["x"], figures=figures, **{SUBSTRING: "done"})
    assert (verdict_.score, verdict_.confidence) == (pytest.approx(0.4 * 0.9 * 0.1 * 0.2), 0.1)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"factors__substring_absent": 1}, "factors.substring_absent"),
        ({"factors__assertions_failed": 1.5}, "factors.assertions_failed"),
        ({"refusal": None}, "refusal"),
        ({"confidence__other": "low"}, "confidence.other"),
    ],
)
def test_wrong_figures_are_refused_with_their_place(changed, changes, path):
    with pytest.raises(ConfigError) as caught:
        Workload(figures=changed(ID, **changes))
    assert path in [problem.path for problem in caught.value.problems]


BLOCK = """\
judges:
  - heuristic/workload:
      rubric: heuristic
      expect_substring_in_final_response: "done"
      llm_judge_model: anthropic:claude-haiku-4-5
      weight_per_turn: 1
      grounding_tokens: ["RoutingEngine", "policy=", "PolicyEvaluation"]
      forbidden_grounding: ["PATTERN_LOOKUP"]
      partial_credit: {enabled: true, criterion: test_pass_count_ratio, map: linear}
"""


def test_whole_block_is_taken_and_the_rubric_is_named_from_the_start():
    subject = Subject("workload", "w", output="PASS 1/2 RoutingEngine policy=", context={"per_turn_scores": [1.0]})
    done = run_pipeline(BLOCK, subjects=[subject])
    (verdict,), (started,) = done.verdicts, done.of("eval.started")
    assert verdict.score == pytest.approx(((1 + 0.5) / 2 + (2 / 3 + 1) / 2) / 2)
    named = {"rubric_id": ID, "rubric_version": "1.2.0", "judge_kind_planned": "heuristic"}
    assert named.items() <= started.payload.items()
    assert (verdict.rubric_id, verdict.rubric_version) == (ID, "1.2.0")


@pytest.mark.parametrize(
    "option", ["grounding_tokens", "forbidden_grounding", "partial_credit", SUBSTRING, "weight_per_turn"]
)
def test_null_is_the_default(option):
    subject = Subject("workload", "w", output="x", context={"per_turn_scores": [1.0]})
    runs_ = [run_pipeline(f"judges: [heuristic/workload{options}]", subjects=[subject]).verdicts[0].score
             for options in ("", f": {{{option}: null}}", ": {partial_credit: {}}")]  # fmt: skip
    assert runs_ == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "grounding_token: [a]",
            "unknown option 'grounding_token' of heuristic/workload, did you mean 'grounding_tokens'?",
        ),
        ("rubric: magic", "expected 'heuristic', 'llm' or 'hybrid', got 'magic'"),
        ("weight_per_turn: -.5", "invalid value for weight_per_turn, expected 0 or more, got -0.5"),
        ("weight_per_turn: true", "invalid value for weight_per_turn, expected float, got True"),
        ("partial_credit: {enabled: 'yes'}", "invalid value for enabled, expected true or false, got 'yes'"),
        ("partial_credit: {criterion: magic}", "expected 'test_pass_count_ratio', got 'magic'"),
        ("partial_credit: {map: cubic}", "expected 'linear' or 'stepped', got 'cubic'"),
        ("partial_credit: {maps: linear}", "unknown option 'maps'"),
        ("grounding_tokens: ['']", "grounding_tokens must be a list of texts that are not empty"),
        ("forbidden_grounding: [1]", "invalid value for forbidden_grounding[0], expected str, got 1"),
        ("grounding_tokens: one", "invalid value for grounding_tokens"),
        (
            "expect_substring_in_final_response: [a]",
            "invalid value for expect_substring_in_final_response, expected str",
        ),
    ],
)
def test_what_is_wrong_in_the_block_is_an_error_that_says_so(option, message):
    with pytest.raises(ConfigError) as caught:
        run_pipeline(f"judges: [heuristic/workload: {{{option}}}]")
    assert message in str(caught.value)


TEXTS = st.sampled_from(["", "  ", "I refuse to", "PASS 3/7", "2 passed", "alpha", "done"]) | st.text(max_size=20)


@given(
    text=TEXTS,
    turns=st.lists(st.floats(0, 1), max_size=4),
    failures=st.lists(st.just("x"), max_size=1),
    credit=st.sampled_from([None, LINEAR, STEPPED, PartialCredit()]),
    tokens=st.none() | st.lists(st.sampled_from(["alpha", "x"]), max_size=2),
    expected=st.none() | st.just("done"),
)
def test_score_is_bounded_and_the_same_again(text, turns, failures, credit, tokens, expected):
    options = {"failures": failures, "partial_credit": credit, "grounding_tokens": tokens, SUBSTRING: expected}
    verdict_ = judge(text, turns, **options)
    assert 0 <= verdict_.score <= 1
    assert verdict_ == judge(text, turns, **options)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_the_mean_of_the_turns_lies_between_them(turns):
    assert min(turns) <= judge("done", turns).score <= max(turns)


@given(
    st.text(max_size=60) | st.from_regex(r"(PASS|FAIL) [0-9]{1,4} ?/ ?[0-9]{1,4}|[0-9]{1,4} (passed|failed|errors?)")
)
def test_any_text_has_counts_or_none(text):
    counts = Counts.read(text)
    assert counts is None or (counts.total > 0 and 0 <= counts.ratio <= 1)


def judge_by(block, text="PASS 2/4 and Alpha", context=None, **options):
    context = {"per_turn_scores": [1.0], "evaluate": block, **(context or {})}
    return Workload(figures=FIGURES, **options).judge(Subject("workload", "w", output=text, context=context), ())


BLOCKS = [
    {},
    {"rubric": "llm", "llm_judge_model": "m", "weight_per_turn": 2},
    {SUBSTRING: "PASS"},
    {"grounding_tokens": ["alpha", "beta"], "forbidden_grounding": ["ghost"]},
    {"partial_credit": {"enabled": True, "map": "stepped"}},
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_workloads_own_block_is_as_good_as_options(block):
    as_options = {key: tuple(value) if isinstance(value, list) else value for key, value in block.items()}
    if "partial_credit" in block:
        as_options["partial_credit"] = STEPPED
    verdict_, expected = judge_by(block), judge("PASS 2/4 and Alpha", **as_options)
    assert verdict_.signals == {**expected.signals, "evaluate": block}
    assert (verdict_.score, verdict_.confidence) == (expected.score, expected.confidence)


def test_keys_of_the_block_stand_in_for_options_and_the_others_stay():
    options_ = {SUBSTRING: "absent", "grounding_tokens": ("Alpha",)}
    assert judge_by({}, **options_).signals["substring_present"] is False
    block_ = judge_by({SUBSTRING: "pass"}, **options_)
    assert block_.signals["substring_present"] is True
    assert block_.signals["grounding_tokens_present"] == ["Alpha"]
    assert "substring_present" not in judge_by({SUBSTRING: None}, **options_).signals


def test_each_workload_of_a_run_is_judged_by_its_own_block():
    first = Workload(figures=FIGURES)
    blocks = [{SUBSTRING: word} for word in ("there", "absent", "there")]
    context = [{"per_turn_scores": [0.5], "evaluate": block} for block in blocks]
    scores_ = [
        first.judge(Subject("workload", "w", output="there", context=verdict_), ()).score for verdict_ in context
    ]
    assert scores_ == [0.75, 0.25, 0.75]
    assert first == Workload(figures=FIGURES)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("heuristic", "evaluate is a mapping, not 'heuristic'"),
        ({"grounding_token": ["a"], "z": 1}, "unknown evaluate keys: ['grounding_token', 'z'], did you mean 'grounding_tokens'?"),
        ({"rubric": "magic"}, "rubric is 'heuristic' or 'llm' or 'hybrid', not 'magic'"),
        ({"weight_per_turn": -0.5}, "weight_per_turn is a number, 0 or more, not -0.5"),
        ({"weight_per_turn": True}, "weight_per_turn is a number, 0 or more, not True"),
        ({SUBSTRING: 5}, f"{SUBSTRING} is a text, not 5"),
        ({"grounding_tokens": ["a", ""]}, "grounding_tokens is a list of texts that are not empty"),
        ({"forbidden_grounding": "a"}, "forbidden_grounding is a list of texts that are not empty, not 'a'"),
        ({"partial_credit": True}, "partial_credit is a mapping, not True"),
        ({"partial_credit": {"enabled": "yes"}}, "enabled is true or false, not 'yes'"),
        ({"partial_credit": {"criterion": "magic"}}, "criterion is 'test_pass_count_ratio', not 'magic'"),
        ({"partial_credit": {"map": "cubic"}}, "map is 'linear' or 'stepped', not 'cubic'"),
        ({"partial_credit": {"maps": 1}}, "unknown partial_credit keys: ['maps'], did you mean 'map'?"),
    ],
)  # fmt: skip
def test_a_wrong_block_is_a_failure_that_says_what_is_wrong(block, message):
    failure_ = judge_by(block)
    assert isinstance(failure_, Failure)
    assert failure_.kind == "rubric_invalid"
    assert message in failure_.message
    assert "w" in failure_.message


def test_everything_that_is_wrong_with_a_block_is_said_at_once():
    message = judge_by({"rubric": 1, "weight_per_turn": "x", "more": 1}).message
    assert all(part in message for part in ("rubric is", "weight_per_turn is", "unknown evaluate keys: ['more']"))


def test_context_that_holds_something_else_fails_with_a_block_too():
    assert judge_by({}, context={"per_turn_scores": [7]}).kind == "missing_input"


def test_many_different_blocks_are_forgotten_again():
    judge_ = Workload(figures=FIGURES)
    for number in range(1010):
        context = {"evaluate": {"weight_per_turn": number}}
        assert (
            judge_.judge(Subject("workload", "w", output="x", context=context), ()).signals["weight_per_turn"] == number
        )
    assert len(judge_._by_block) <= 1000
