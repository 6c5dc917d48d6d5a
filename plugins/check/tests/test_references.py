"""A value from the row may be a list of references; a blank reference is missing."""

from __future__ import annotations

import pytest

from dicast import Failure, Score, Subject
from dicast_check import Contains, ContainsAll, ContainsAny, Equals, Icontains, Levenshtein, OneOf, Regex, StartsWith


def row(output, reference=None, **context):
    return Subject("row", "1", "what?", output, reference, context)


CHECKS = [Equals(), Contains("{{ reference }}"), Icontains("{{ reference }}"), StartsWith("{{ reference }}")]


@pytest.mark.parametrize("check", CHECKS)
def test_one_of_several_references_is_enough_and_is_named(check):
    score = check.score(row("Paris", ["Lyon", "Paris"]))
    assert isinstance(score, Score)
    assert score.value == 1.0
    assert score.details.endswith("'Paris' (reference 2 of 2)")
    missed = check.score(row("Rome", ["Lyon", "Paris"]))
    assert missed.value == 0.0
    assert missed.details.endswith(" none of ['Lyon', 'Paris']")


@pytest.mark.parametrize("make", [Equals, Contains, Icontains, StartsWith])
def test_the_share_of_all_references(make):
    check = make("{{ reference }}", references="all")
    score = check.score(row("Paris", ["Paris", "Lyon"]))
    assert score.value == 0.5
    assert score.details.endswith("1 of 2 references, not 'Lyon'")
    assert check.score(row("Paris", ["Paris", "Paris"])).value == 1.0
    assert make("{{ reference }}", references="all", negate=True).score(row("Paris", ["Paris", "Lyon"])).value == 0.5


def test_negated_none_of_the_references_may_match():
    check = Contains("{{ reference }}", negate=True)
    assert check.score(row("Rome", ["Lyon", "Paris"])).value == 1.0
    score = check.score(row("Paris", ["Lyon", "Paris"]))
    assert (score.value, score.details) == (0.0, "the output contains 'Paris' (reference 2 of 2)")


def test_a_list_is_one_value_if_it_is_whole_or_next_to_an_output_that_is_a_list():
    assert Equals().score(row(["a", "b"], ["a", "b"])).value == 1.0
    assert Equals().score(row(["a"], ["a", "b"])).value == 0.0
    assert Equals(references="whole").score(row("a", ["a"])).value == 0.0
    assert Equals(references="whole").score(row('["a"]', ["a"])).value == 1.0
    assert Equals().score(row('["a", "b"]', ["a", "b"])).value == 1.0
    assert Equals(field="x").score(row({"x": ["a"]}, ["a"])).value == 1.0


def test_a_list_in_the_pipeline_file_is_one_value():
    assert Equals(["a", "b"]).score(row("a")).value == 0.0
    assert Equals([]).score(row([])).value == 1.0


@pytest.mark.parametrize(
    "check",
    [
        *CHECKS,
        Regex("{{ reference }}"),
        ContainsAny("{{ reference }}"),
        OneOf("{{ reference }}"),
        OneOf(["{{ reference }}"]),
    ],
)
@pytest.mark.parametrize("reference", [None, "", " \n", []])
def test_a_blank_reference_is_missing(check, reference):
    score = check.score(row("Paris", reference))
    assert isinstance(score, Failure)
    assert score.kind == "missing_input"


def test_blank_references_in_a_list_are_left_out():
    assert Contains("{{ reference }}").score(row("Rome", ["", "Paris"])).value == 0.0
    assert Contains("{{ reference }}").score(row("Rome", ["", None])).kind == "missing_input"
    assert ContainsAny("{{ reference }}").score(row("Rome", ["", "Paris"])).value == 0.0


def test_a_template_with_more_than_the_column_may_have_a_blank_part():
    assert Equals("{{ first }} {{ last }}").score(row("Cher ", first="Cher", last="")).value == 1.0
    assert Regex("^{{ first }}{{ last }}").score(row("Cher ", first="Cher", last="")).value == 1.0
    question = Subject("row", "1", "", "A: yes", columns={"question": ""})
    assert Contains("A: {{ question }}").score(question).value == 1.0


AROUND_REFERENCE = [
    lambda name: Regex(rf"(?i)\b{{{{ {name} }}}}\b"),
    lambda name: Contains(f" {{{{ {name} }}}}."),
    lambda name: Contains(f"{{{{ {name} }}}}", negate=True),
    lambda name: Icontains(f"is {{{{ {name} }}}}"),
    lambda name: StartsWith(f"{{{{ {name} }}}} "),
    lambda name: Equals(f"It is {{{{ {name} }}}}."),
    lambda name: ContainsAny([f"is {{{{ {name} }}}}", "no"]),
    lambda name: ContainsAll([f"is {{{{ {name} }}}}", "no"]),
    lambda name: OneOf([f"is {{{{ {name} }}}}", "no"]),
    lambda name: Levenshtein(f"It is {{{{ {name} }}}}."),
]


@pytest.mark.parametrize("make", AROUND_REFERENCE)
@pytest.mark.parametrize("reference", ["", " \n", []])
def test_a_blank_reference_within_a_longer_text_is_missing_under_either_name(make, reference):
    mapped = Subject("row", "1", "what?", "It is Paris.", reference, columns={"q": "what?", "kind": reference})
    of_json = Subject("row", "1", "what?", "It is Paris.", columns={"q": "what?", "kind": ""})
    for subject, name in (
        (row("It is Paris.", reference), "reference"),
        (mapped, "reference"),
        (mapped, "kind"),
        (of_json, "kind"),
    ):
        score = make(name).score(subject)
        assert isinstance(score, Failure)
        assert score.kind == "missing_input"
        assert name in score.message


def test_a_blank_part_of_a_reference_is_missing():
    subject = Subject("row", "1", "what?", "It is Paris.", {"city": ""}, columns={"gold": {"city": ""}})
    assert Regex("^{{ reference.city }}").score(subject).kind == "missing_input"
    assert Regex("^{{ gold.city }}").score(subject).kind == "missing_input"
    inner = Subject("row", "1", "what?", "It is Paris.", "", {"meta": {}}, columns={"meta": {"city": ""}})
    assert Regex("^{{ meta.city }}").score(inner).kind == "missing_input"


@pytest.mark.parametrize("check", [Regex("{{ first }}{{ last }}"), Contains("{{ first }} {{ last }}")])
def test_a_text_that_becomes_blank_as_a_whole_is_missing(check):
    score = check.score(row("Cher", first="", last=""))
    assert (score.kind, "is blank in this row" in score.message) == ("missing_input", True)


def test_the_closest_of_several_references_counts_for_a_distance():
    check = Levenshtein(threshold=1)
    assert check.score(row("Paris", ["Lyon", "Pari"])).value == 1.0
    assert check.score(row("Rome", ["Lyon", "Paris"])).value == 0.0
    assert check.score(row("Rome", " ")).kind == "missing_input"
