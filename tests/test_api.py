"""API 1 stays: signatures, hooks, optional members and events, compared with data in ``tests/api``."""

from __future__ import annotations

import copy
import importlib
import json
import types
from pathlib import Path

import pytest

import dicast
from dicast.testing import API, FakeJudge, FakeMetric, run_pipeline

ROOT = Path(__file__).resolve().parents[1]
EVENTS = Path(__file__).with_name("api") / f"{API}-events.json"


@pytest.fixture(scope="module")
def frozen(api_signatures):
    return json.loads(api_signatures.FROZEN.read_text(encoding="utf-8"))


def test_the_public_api_keeps_all_that_is_frozen(api_signatures, frozen):
    assert [*api_signatures.breaks(frozen, api_signatures.describe_api())] == []


def test_every_public_name_is_frozen_or_new(frozen):
    assert {f"dicast.{name}" for name in ("Subject", "evaluate", "metric", "Judge", "hookimpl")} <= {*frozen}
    assert {"hooks.dicast_sources", "dicast.optional.HasEstimate", "dicast.testing.JudgeConformance"} <= {*frozen}
    assert len(frozen) > 500


@pytest.mark.parametrize(
    "module", [dicast, importlib.import_module("dicast.reading"), importlib.import_module("dicast.testing")]
)
def test_each_exported_name_exists(module):
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def callables(described, name):
    """Yield each list of parameters in a description, with the name of its owner."""
    if described.get("parameters"):
        yield name, described["parameters"]
    for member, inner in described.get("members", {}).items():
        yield from callables(inner, f"{name}.{member}")


def removed(parameters, number):
    del parameters[number]


def renamed(parameters, number):
    parameters[number]["name"] = "renamed"


def required(parameters, number):
    del parameters[number]["default"]


def other_default(parameters, number):
    parameters[number]["default"] = "'another'"


def narrowed(parameters, number):
    parameters[number]["type"] = "Narrower"


CHANGES = {removed: "name", renamed: "name", required: "default", other_default: "default", narrowed: "type"}


def is_open(parameters, parameter):
    """Return True if a removed keyword still arrives in ``**options``."""
    return any(item.get("kind") == "var_keyword" for item in parameters) and parameter.get("kind") == "keyword_only"


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_argument_of_any_public_signature_is_reported_by_its_name(change, api_signatures, frozen):
    count = 0
    for name, described in frozen.items():
        for place, (owner, parameters) in enumerate(callables(described, name)):
            for number, parameter in enumerate(parameters):
                usable = CHANGES[change] in parameter and parameter.get("type") not in {"object", "Any"}
                if not usable or parameter["name"] == "self" or is_open(parameters, parameter):
                    continue
                changed = copy.deepcopy(described)
                change([*callables(changed, name)][place][1], number)
                messages = [*api_signatures.breaks({name: described}, {name: changed})]
                assert any(owner in message and parameter["name"] in message for message in messages), (
                    owner,
                    parameter,
                )
                count += 1
    assert count > 300


def test_a_removed_name_or_member_is_reported_by_its_name(api_signatures, frozen):
    for name, described in frozen.items():
        assert [*api_signatures.breaks({name: described}, {})] == [f"{name} was removed"]
        for member in described.get("members", {}):
            changed = copy.deepcopy(described)
            del changed["members"][member]
            assert f"{name}.{member} was removed" in [*api_signatures.breaks({name: described}, {name: changed})]


SOURCE = """
from __future__ import annotations
import attrs
from typing import Protocol

def greet(name: str, greeting: str = "Hello", *, loud: bool = False) -> str:
    return greeting + name

@attrs.frozen
class Letter:
    to: str
    text: str = ""

    @property
    def size(self) -> int:
        return len(self.text)

class Carrier(Protocol):
    def carry(self, letter: Letter) -> bool: ...

WORDS = ("please", "thanks")
LIMIT = 3
"""


def described(api_signatures, source):
    module = types.ModuleType("post")
    exec(source, vars(module))
    module.__all__ = [
        name for name in ("greet", "Letter", "Carrier", "WORDS", "LIMIT", "added", "older") if hasattr(module, name)
    ]
    for name in module.__all__:
        if isinstance(item := getattr(module, name), type):
            item.__module__ = "post"
    return api_signatures.describe_api([module])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('name: str, greeting: str = "Hello", *,', "name: str, *,", "post.greet: the argument greeting was removed"),
        ("name: str, greeting", "who: str, greeting", "post.greet: the argument name was removed"),
        ('"Hello"', '"Hi"', "post.greet: the argument greeting had the default 'Hello', and has 'Hi'"),
        (' = "Hello"', "", "post.greet: the argument greeting was optional, and is required"),
        ("loud: bool = False", "loud: bool = False, soft: bool", "post.greet: the required argument soft was added"),
        (
            'greeting: str = "Hello", *, loud',
            '*, greeting: str = "Hello", loud',
            "post.greet: the argument greeting was positional_or_keyword, and is keyword_only",
        ),
        (
            'name: str, greeting: str = "Hello"',
            'greeting: str = "Hello", name: str = ""',
            "post.greet: the argument name has another position",
        ),
        ("def greet", "async def greet", "post.greet was a function, and is a async function"),
        ("-> str", "-> str | None", "post.greet returned str, and returns str | None"),
        ("def greet", "def meet", "post.greet was removed"),
        ('text: str = ""', 'text: str = "-"', "post.Letter: the argument text had the default '', and has '-'"),
        ("    to: str\n", "    to: str\n    sender: str\n", "post.Letter: the required argument sender was added"),
        ("def size", "def length", "post.Letter.size was removed"),
        (
            "    def carry",
            "    def weigh(self) -> int: ...\n    def carry",
            "post.Carrier.weigh was added: existing components lack it",
        ),
        (
            "letter: Letter)",
            "letter: Letter, fast: bool = True)",
            "post.Carrier.carry: fast was added: existing components do not accept it",
        ),
        ('"please", ', "", "post.WORDS no longer has 'please'"),
        ("LIMIT = 3", "LIMIT = 4", "post.LIMIT was 3, and is 4"),
    ],
)
def test_a_breaking_change_of_source_is_reported(before, after, message, api_signatures):
    source = SOURCE.replace(before, after, 1)
    assert source != SOURCE
    assert message in [*api_signatures.breaks(described(api_signatures, SOURCE), described(api_signatures, source))]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loud: bool = False", "loud: bool = False, soft: bool = True"),
        ("name: str,", "name: str | bytes,"),
        ("*, loud", "loud"),
        ('text: str = ""', 'text: str = ""\n    sender: str = ""'),
        ("    @property\n", "    def shout(self) -> str:\n        return self.text\n\n    @property\n"),
        ('"thanks")', '"thanks", "sorry")'),
        ("LIMIT = 3", "LIMIT = 3\ndef added() -> None: ..."),
    ],
)
def test_a_compatible_addition_passes(before, after, api_signatures):
    source = SOURCE.replace(before, after, 1)
    assert source != SOURCE
    assert [*api_signatures.breaks(described(api_signatures, SOURCE), described(api_signatures, source))] == []


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("Deprecated since dicast 0.2. Use post.greet instead.", True),
        ("Deprecated since dicast 0.2.", False),
        ("Use post.greet instead.", False),
        ("Deprecated since dicast 0.2. Use post.missing instead.", False),
    ],
)
def test_a_deprecation_has_its_version_and_an_existing_replacement(text, is_right, api_signatures):
    planted = f"from typing_extensions import deprecated\n@deprecated({text!r})\ndef older() -> None: ...\n"
    space = {}
    exec(planted, space)
    with pytest.warns(DeprecationWarning, match=text):
        space["older"]()
    current = described(api_signatures, SOURCE + planted)
    messages = [*api_signatures.breaks(described(api_signatures, SOURCE), current)]
    assert (messages == []) is is_right
    assert all("post.older" in message for message in messages)


# Events


def shape(value, path=""):
    """Return the JSON types in *value* by their paths; items of lists share one path."""
    if isinstance(value, dict):
        inside = [shape(item, f"{path}.{name}") for name, item in value.items()]
    elif isinstance(value, list):
        inside = [shape(item, f"{path}[]") for item in value]
    else:
        return {path: {type(value).__name__}}
    types_by_path = {path: {type(value).__name__}}
    for part in inside:
        for place, names in part.items():
            types_by_path[place] = types_by_path.get(place, set()) | names
    return types_by_path


def event_shapes():
    """Return the shape of the payload of each event type in a run with a metric, a paid judge and failures."""
    judgments = [
        dicast.Judgment(0.75, 0.5, "llm", "fake", dicast.Cost("0.01"), {"words": 3}),
        dicast.Failure("refused", "no"),
        RuntimeError("x"),
    ]
    run = run_pipeline(
        "metrics: [first]\njudges: [second]\ngate: {on: metrics, min_score: 0.1}\nbudget: {run: 1 usd}",
        subjects=[dicast.Subject("row", str(number), "in", "out", "reference", {"column": 1}) for number in range(3)],
        components={"first": FakeMetric(dicast.Score(0.5, details="d", feedback="f")), "second": FakeJudge(judgments)},
    )
    shapes = {}
    for event in run.events:
        payload = json.loads(json.dumps(event.payload, default=str))
        for place, names in shape(payload).items():
            known = shapes.setdefault(event.type, {})
            known[place] = known.get(place, set()) | names
    return {
        type_: {place: sorted(names) for place, names in sorted(places.items())}
        for type_, places in sorted(shapes.items())
    }


def test_the_events_of_a_run_keep_their_types_and_fields():
    frozen, current = json.loads(EVENTS.read_text(encoding="utf-8")), event_shapes()
    lost = [
        f"{type_}{place} was {names}, and is {current.get(type_, {}).get(place)}"
        for type_, places in frozen.items()
        for place, names in places.items()
        if not set(current.get(type_, {}).get(place, ())) & set(names)
    ]
    assert lost == []
    assert {"run.started", "eval.completed", "eval.failed", "spend.settled", "run.completed"} <= {*frozen}


if __name__ == "__main__":
    EVENTS.write_text(json.dumps(event_shapes(), indent=1) + "\n", encoding="utf-8")
