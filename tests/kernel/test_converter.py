"""Values to JSON and back, and components from plain data."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Annotated, NewType

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import (
    ConfigError,
    Cost,
    Entry,
    Event,
    Failure,
    Head,
    Judgment,
    Query,
    RequestError,
    Rubric,
    Score,
    Secret,
    Subject,
    TraceEvent,
    Verdict,
)
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.pipeline.faults import Invalid
from dicast._kernel.pipeline.structure import Structurer
from dicast._kernel.values.json_form import structure, unstructure

SINK = """
@attrs.frozen
class Null:
    def write(self, events): ...
    def close(self): ...

@hookimpl
def dicast_sinks():
    return [Null]
"""

OPTIONS = """
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal

@attrs.frozen
class Prices:
    in_price: Decimal
    out_price: Decimal = Decimal(0)

@attrs.frozen
class Thing:
    \"\"\"Takes everything.\"\"\"

    tier = "proxy"
    whole: int = 0
    number: float = 0.0
    text: str = ""
    flag: bool = False
    maybe: int | None = None
    choice: Literal["red", "green", 3] = "red"
    either: int | list[int] = 0
    price: Literal["free"] | Prices = "free"
    texts: list[str] = attrs.field(factory=list)
    tuples: tuple[int, ...] = ()
    pair: tuple[int, str] = (0, "")
    unique: frozenset[str] = frozenset()
    sequence: Sequence[float] = ()
    counts: Mapping[str, int] = attrs.field(factory=dict)
    any: object = None
    path: Path = Path("unset")
    secret: Secret | None = None
    headers: dict[str, Secret] = attrs.field(factory=dict)
    money: Cost = Cost.zero()
    inner: Metric | None = None
    inners: tuple[Metric | Judge, ...] = ()
    rubric: Rubric | None = None
    needs: str = attrs.field(default="a", validator=attrs.validators.in_(["a", "b"]))
    checked: int = attrs.field(default=0)

    @checked.validator
    def _small(self, attribute, value):
        if value > 9:
            raise ValueError(f"checked is at most 9, not {value}")

    def __attrs_post_init__(self):
        if self.text == self.choice == "green":
            raise ConfigError("text and choice are both green")
        if self.text == "crash":
            raise KeyError("oops")

    def score(self, subject):
        return Score(1.0)

@judge(accepts=["turn"])
def stern(subject: Subject, *, limit: int) -> Judgment:
    return Judgment(0.0)

@hookimpl
def dicast_metrics():
    return [Thing]

@hookimpl
def dicast_judges():
    return [stern]
"""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(st.text(), json_values, max_size=3)
shares = st.floats(0, 1)
amounts = st.none() | st.decimals(0, 10**6, allow_nan=False, allow_infinity=False)
costs = st.builds(Cost, amounts, st.sampled_from(["usd", "msat"]), st.none() | st.text())
texts = st.text()
maybe = st.none() | texts
rubrics = st.builds(Rubric, texts, texts, texts, mappings)
events = st.builds(Event, texts, texts, texts, texts, mappings, maybe, maybe, maybe, maybe)
values = st.one_of(
    st.builds(Score, shares, shares, texts, texts, costs, mappings, st.none() | st.floats(-10, 10)),
    st.builds(Failure, st.sampled_from(["timeout", "crashed"]), texts, st.booleans(), costs),
    st.builds(Judgment, shares, shares, st.sampled_from(["llm", "human"]), maybe, costs, mappings, st.none() | rubrics),
    st.builds(
        Subject,
        texts,
        texts,
        json_values,
        json_values,
        json_values,
        mappings,
        st.lists(st.builds(TraceEvent, texts, mappings, maybe, maybe, maybe, mappings), max_size=2).map(tuple),
        maybe,
        maybe,
    ),
    events,
    st.builds(Entry, st.integers(0, 9), events, texts, texts),
    st.builds(Head, st.integers(0, 9), texts),
    st.builds(Query, maybe, st.lists(texts, max_size=2).map(tuple)),
    costs,
    st.builds(
        Verdict,
        *(texts, texts, texts, shares, shares, texts, maybe, amounts, maybe, st.integers(0, 9), texts, texts, mappings),
        *(maybe, texts, texts, texts, texts),
        scores=st.lists(mappings, max_size=2).map(tuple),
        propensity=st.none() | shares,
        judge_cost_msat=amounts,
    ),
)


@pytest.fixture
def thing(plugin, tmp_path):
    """Build ``x/thing`` from options written in YAML; returns the component."""
    plugin("x", OPTIONS + SINK)
    (tmp_path / "in.csv").write_text("id,output\n1,a\n")

    def build(options, extra="", environ=None):
        file = tmp_path / "p.yaml"
        file.write_text(f"source: {{rows/csv: {{path: in.csv}}}}\nmetrics:\n  - x/thing: {options}\n{extra}")
        return load_pipeline(file, environ=environ or {}).metrics[0].component

    return build


@pytest.fixture
def faults(thing):
    """Return the faults of options: ``(line, column, path, message, value, hint)``."""

    def build(options, extra="", environ=None):
        with pytest.raises(RequestError) as caught:
            thing(options, extra, environ)
        return [(p.line, p.column, p.path, p.message, p.value, p.hint) for p in caught.value.problems]

    return build


@given(values)
def test_values_survive_json(value):
    assert structure(orjson.loads(orjson.dumps(unstructure(value))), type(value)) == value


def test_money_is_a_decimal_string_and_an_unknown_amount_null():
    assert unstructure(Cost("0.10")) == {"amount": "0.10", "unit": "usd", "pricing_version": None}
    assert unstructure(Cost.unknown("msat"))["amount"] is None


def test_a_secret_is_never_written():
    assert unstructure(Secret("hunter2")) == "***"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("{whole: 3}", {"whole": 3}),
        ("{number: 3}", {"number": 3.0}),
        ("{maybe: null}", {"maybe": None}),
        ("{choice: 3}", {"choice": 3}),
        ("{either: [1, 2]}", {"either": [1, 2]}),
        ("{texts: [a, b]}", {"texts": ["a", "b"]}),
        ("{tuples: [1, 2]}", {"tuples": (1, 2)}),
        ("{pair: [1, a]}", {"pair": (1, "a")}),
        ("{unique: [a, a]}", {"unique": frozenset("a")}),
        ("{sequence: [1, 2.5]}", {"sequence": (1.0, 2.5)}),
        ("{counts: {a: 1}}", {"counts": {"a": 1}}),
        ("{any: {a: [1, null]}}", {"any": {"a": [1, None]}}),
        ("{money: 0.02 usd}", {"money": Cost("0.02")}),
    ],
)
def test_options_become_values_of_their_types(thing, options, expected):
    component = thing(options)
    for name, value in expected.items():
        assert getattr(component, name) == value
        assert type(getattr(component, name)) is type(value)


@pytest.mark.parametrize(
    ("options", "path", "expected"),
    [
        ('{whole: "12"}', "metrics[0].whole", "invalid value for whole, expected int, got '12'"),
        ("{whole: true}", "metrics[0].whole", "invalid value for whole, expected int, got True"),
        ("{whole: 1.0}", "metrics[0].whole", "invalid value for whole, expected int, got 1.0"),
        ("{number: true}", "metrics[0].number", "invalid value for number, expected float, got True"),
        ("{number: a}", "metrics[0].number", "invalid value for number, expected float, got 'a'"),
        ("{text: 1}", "metrics[0].text", "invalid value for text, expected str, got 1"),
        ("{flag: 1}", "metrics[0].flag", "invalid value for flag, expected true or false, got 1"),
        ("{maybe: a}", "metrics[0].maybe", "invalid value for maybe, expected int, got 'a'"),
        ("{texts: a}", "metrics[0].texts", "invalid value for texts, expected list of str, got 'a'"),
        ("{texts: [a, 1]}", "metrics[0].texts[1]", "invalid value for texts[1], expected str, got 1"),
        ("{pair: [1]}", "metrics[0].pair", "invalid value for pair, expected list of int"),
        ("{counts: {a: b}}", "metrics[0].counts.a", "invalid value for a, expected int, got 'b'"),
        ("{either: a}", "metrics[0].either", "invalid value for either, expected int or list of int, got 'a'"),
        ("{either: [a]}", "metrics[0].either[0]", "invalid value for either[0], expected int, got 'a'"),
        (
            "{price: {in_price: x}}",
            "metrics[0].price.in_price",
            "invalid value for in_price, expected decimal, got 'x'",
        ),
        (
            "{price: {in_price: 'NaN'}}",
            "metrics[0].price.in_price",
            "invalid value for in_price, expected decimal, got 'NaN'",
        ),
        ("{price: {}}", "metrics[0].price", "metrics[0].price needs the option 'in_price'"),
        ("{money: 1 eur}", "metrics[0].money", "unknown unit 'eur': a cost is in usd or msat"),
        ("{checked: 10}", "metrics[0].checked", "checked is at most 9, not 10"),
        ("{text: green, choice: green}", "metrics[0]", "text and choice are both green"),
        ("{text: crash}", "metrics[0]", "KeyError: 'oops'"),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(faults, options, path, expected):
    ((_, _, problem, message, _, _),) = faults(options)
    assert (problem, message) == (path, expected)


def test_unknown_option_points_at_the_key_and_names_the_nearest(faults):
    assert faults("{whole: 1, nmber: 2}") == [
        (3, 25, "metrics[0]", "unknown option 'nmber' of x/thing", "nmber", "number")
    ]


def test_a_wrong_choice_names_the_nearest(faults):
    ((line, column, _, message, value, hint),) = faults("{choice: gren}")
    assert (line, column, value, hint) == (3, 23, "gren", "green")
    assert message == "invalid value for choice, expected 'red', 'green' or 3, got 'gren'"


def test_all_faults_are_found_at_once(faults):
    reports = faults("{whole: a, nmber: 1, checked: 10, needs: c, texts: [1, 2], price: {x: 1}}")
    assert [path for _, _, path, *_ in reports] == [
        "metrics[0].whole",
        "metrics[0]",
        "metrics[0].checked",
        "metrics[0].needs",
        "metrics[0].texts[0]",
        "metrics[0].texts[1]",
        "metrics[0].price",
        "metrics[0].price",
    ]


def plain_structurer():
    """Return a structurer without components."""
    return Structurer(lambda value, kinds: None, {})


@given(st.floats(-1e99, 1e99) | st.integers(-(2**53), 2**53))
def test_decimals_keep_the_digits_that_were_written(number):
    assert plain_structurer().structure(number, Decimal) == Decimal(str(number))


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_numbers_are_finite(number):
    with pytest.raises(Invalid, match="expected float"):
        plain_structurer().structure(number, float)


class Color(Enum):
    RED = "red"


@dataclass
class Size:
    width: int
    colors: tuple[Color, ...] = ()


Meters = NewType("Meters", int)


@pytest.mark.parametrize(
    ("data", "annotation", "value"),
    [
        ("red", Color, Color.RED),
        (["red"], list[Color], [Color.RED]),
        ("red", Color | None, Color.RED),
        ({"width": 3, "colors": ["red"]}, Size, Size(3, (Color.RED,))),
        (3, Meters, 3),
        (3, Annotated[int, "meters"], 3),
    ],
)
def test_types_of_the_standard_library_are_structured_too(data, annotation, value):
    structured = plain_structurer().structure(data, annotation)
    assert (structured, type(structured)) == (value, type(value))


@pytest.mark.parametrize(("data", "annotation"), [("blue", Color), ("a", PurePath), ("a", Meters)])
def test_a_value_of_another_type_is_a_mismatch(data, annotation):
    with pytest.raises(Invalid) as error:
        plain_structurer().structure(data, annotation)
    assert [fault.mismatch for fault in error.value.faults] == [True]


def test_a_pipeline_of_plain_options_needs_no_cattrs(thing, monkeypatch):
    """Its import takes as long as the checks of 1,000 rows."""
    monkeypatch.setitem(sys.modules, "cattrs", None)
    options = "{either: [1], price: {in_price: 1}, pair: [1, a], headers: {a: b}, inner: x/thing, money: 1 usd}"
    assert thing(options).pair == (1, "a")


def test_a_missing_option_is_named(faults):
    ((line, _, path, message, _, _),) = faults("{inner: x/stern}")
    assert (line, path, message) == (3, "metrics[0].inner", "x/stern needs the option 'limit'")


def test_a_judge_may_stand_where_a_metric_is_expected(thing):
    assert thing("{inner: {x/stern: {limit: 3}}}").inner.limit == 3


def test_components_nest_and_their_faults_have_their_own_place(faults):
    ((line, column, path, message, _, _),) = faults("{inners: [x/thing, {x/stern: {limit: a}}]}")
    assert (line, column, path) == (3, 51, "metrics[0].inners[1].limit")
    assert message == "invalid value for limit, expected int, got 'a'"


def test_a_component_of_the_wrong_kind_is_refused(faults):
    ((_, _, path, message, _, _),) = faults("{inner: x/null}")
    assert (path, message) == ("metrics[0].inner", "x/null is a sink, not a metric")


@pytest.mark.parametrize("written", ["3", "[x/thing]", "{x/thing: {}, x/stern: {}}", "{x/thing: }", "{}"])
def test_a_component_is_a_name_or_a_name_with_options(faults, written):
    ((_, _, path, _, _, _),) = faults(f"{{inner: {written}}}")
    assert path == "metrics[0].inner"


def test_a_bare_name_refers_to_define_and_is_one_object(thing):
    component = thing("{inners: [strict, strict]}", "define: {strict: {x/stern: {limit: 1}}}")
    first, second = component.inners
    assert first.limit == 1
    assert first is second


def test_an_unknown_bare_name_names_the_nearest(faults):
    ((_, _, _, message, _, hint),) = faults("{inner: strct}", "define: {strict: {x/stern: {limit: 1}}}")
    assert "'strct' is not under 'define'" in message
    assert hint == "strict"


def test_a_fault_under_define_is_reported_once(faults):
    ((line, _, path, message, _, _),) = faults("{inners: [a, a]}", "define: {a: {x/stern: {limt: 1, limit: 2}}}")
    assert (line, path, message) == (4, "define.a", "unknown option 'limt' of x/stern")


def test_definitions_that_refer_in_a_circle_are_refused(faults):
    extra_text = "define: {a: {x/thing: {inner: b}}, b: {x/thing: {inner: a}}}"
    messages = [message for *_, message, _, _ in faults("{inner: a}", extra_text)]
    assert messages == ["'a' is defined in terms of itself: a -> b -> a"]


def test_paths_are_relative_to_the_file_they_stand_in(thing, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.yaml").write_text("define: {deep: {x/thing: {path: there.txt}}}")
    component = thing("{path: ~/here.txt, inner: deep}", "include: sub/more.yaml")
    assert component.path == tmp_path / "~" / "here.txt"
    assert component.inner.path == tmp_path / "sub" / "there.txt"


def test_an_input_must_be_a_file_and_the_nearest_is_named(tmp_path):
    (tmp_path / "rows.csv").write_text("id,output\n1,a\n")
    file = tmp_path / "p.yaml"
    file.write_text("source: {rows/csv: {path: row.csv}}\nmetrics: [proxy/format]\n")
    with pytest.raises(ConfigError) as caught:
        load_pipeline(file)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.path, problem.hint) == (1, 27, "source.path", "rows.csv")
    assert "does not exist" in problem.message


def test_an_input_may_be_stdin():
    text = "source: {rows/csv: {path: '-'}}\nmetrics: [proxy/format]\n"
    assert load_pipeline(text).source.component.path == Path("-")


def test_secrets_are_kept_out_of_options_and_errors(thing, faults):
    assert thing("{secret: '${KEY}'}", environ={"KEY": "hunter2"}).secret == Secret("hunter2")
    for options in ("{headers: '${KEY}'}", "{headers: {a: {b: '${KEY}'}}}", "{inner: {x: '${KEY}'}}"):
        reports = faults(options, environ={"KEY": "hunter2"})
        assert reports
        assert "hunter2" not in repr(reports)


def test_a_rubric_is_found_by_its_id(thing, install, monkeypatch, tmp_path):
    package = tmp_path / "site" / "pack"
    package.mkdir()
    (package / "kind-v1.yaml").write_text("id: kind-v1\nversion: '1.2'\nweights: {a: 0.5}\n")
    (package / "free-v1.md").write_text("---\nid: free-v1\nversion: 1.0.0\n---\nBe kind.\n")
    install("pack", "1.0", {"dicast.rubrics": {"kind-v1": "pack", "free-v1": "pack"}})
    rubric = thing("{rubric: kind-v1}").rubric
    assert (rubric.id, rubric.version, rubric.data["weights"]) == ("kind-v1", "1.2", {"a": 0.5})
    assert rubric.text == (package / "kind-v1.yaml").read_text()
    assert thing("{rubric: free-v1}").rubric.version == "1.0.0"


def test_an_unknown_rubric_names_the_nearest(faults):
    ((_, column, path, message, value, hint),) = faults("{rubric: turn-heuristics-v1}")
    assert (column, path, value, hint) == (23, "metrics[0].rubric", "turn-heuristics-v1", "turn-heuristic-v1")
    assert message.startswith("unknown rubric 'turn-heuristics-v1' (installed: ")
    assert message.endswith("a file ends in .yaml or .md")


def test_an_unknown_rubric_names_the_package_of_rubrics_if_it_is_missing(faults, monkeypatch):
    monkeypatch.setattr("dicast._kernel.pipeline.rubrics.rubrics", dict)
    ((*_, message, _, _),) = faults("{rubric: turn-heuristic-v1}")
    assert re.search(r"The rubrics of dicast are in dicast-rubrics: (uv )?pip install dicast-rubrics$", message)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.yaml", "id: a\nversion: 1.0\n", "r.yaml needs version as text; quote a version that is a number"),
        ("r.yaml", "version: '1'\n", "r.yaml needs id as text"),
        ("r.yaml", "[1]\n", "must be a mapping with id and version"),
        ("r.md", "Be kind.\n", "r.md must begin with id and version between two lines ---"),
        ("r.md", "---\nid: a\n---\n", "r.md needs version as text"),
    ],
)
def test_a_file_that_is_no_rubric_is_refused(faults, tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    ((_, _, path, message, _, _),) = faults(f"{{rubric: {name}}}")
    assert path == "metrics[0].rubric"
    assert says in message


def test_a_rubric_given_as_the_default_is_read(plugin):
    plugin(
        "y",
        """
        @attrs.frozen
        class Turn:
            rubric: Rubric = "turn-heuristic-v1"
            def judge(self, subject, children): ...
        @hookimpl
        def dicast_judges():
            return [Turn]
        """.replace("\n        ", "\n"),
    )
    text = "source: {rows/csv: {path: '-'}}\njudges: [y/turn]\n"
    slot = load_pipeline(text).judges[0]
    assert slot.component.rubric.id == "turn-heuristic-v1"
    assert slot.options["rubric"]["version"] == slot.component.rubric.version


def test_types_that_cannot_be_read_at_run_time_are_the_plugins_fault(plugin):
    plugin(
        "y",
        """
@attrs.frozen
class Odd:
    tier = "proxy"
    other: "Nowhere" = None
    def score(self, subject): ...
@hookimpl
def dicast_metrics():
    return [Odd]
""",
    )
    with pytest.raises(Exception, match="name 'Nowhere' is not defined.*outside of 'if TYPE_CHECKING'"):
        load_pipeline("source: {rows/csv: {path: '-'}}\nmetrics: [y/odd]\n")


@pytest.mark.parametrize(
    ("files", "groups", "says"),
    [
        ({}, {"r1": "pack"}, "there is no r1.yaml and no r1.md in pack"),
        ({"r1.yaml": "id: other\nversion: '1'\n"}, {"r1": "pack"}, "has the id 'other'"),
        ({"r1.yaml": "id: r1\nid: r1\n"}, {"r1": "pack"}, "is given twice"),
        ({}, {"r1": "nowhere"}, "cannot be read: ModuleNotFoundError"),
    ],
)
def test_a_broken_rubric_pack_is_named(faults, install, tmp_path, files, groups, says):
    package = tmp_path / "site" / "pack"
    package.mkdir()
    for name, text in files.items():
        (package / name).write_text(text)
    install("pack", "1.0", {"dicast.rubrics": groups})
    ((_, _, path, message, _, _),) = faults("{rubric: r1}")
    assert path == "metrics[0].rubric"
    assert says in message


def test_a_rubric_from_two_distributions_names_both(faults, install):
    for name in ("pack-a", "pack-b"):
        install(name, "1.0", {"dicast.rubrics": {"r1": "pack"}})
    ((_, _, _, message, _, _),) = faults("{rubric: r1}")
    assert "pack-a 1.0 and pack-b 1.0" in message


def test_a_missing_rubric_file_is_named(faults):
    ((_, _, _, message, _, _),) = faults("{rubric: gone.yaml}")
    assert message.startswith("cannot read the rubric gone.yaml: ")
