"""Faults of components that a run names: wrong values that they declare, missing members of live objects, and wrong answers."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager

import attrs
import pytest

from dicast import (
    ChatModel,
    ChatRequest,
    Cost,
    DataError,
    Failure,
    Judgment,
    Message,
    PluginError,
    Reply,
    RequestError,
    Score,
)
from dicast.testing import FakeMetric, MemoryLedger, MemorySink, run_pipeline, sample

FILE = r" \(tests/kernel/test_component_faults\.py:\d+\)"


def run(text, components, rows=3):
    subjects = [sample("x", id=str(number)) for number in range(rows)]
    return run_pipeline(text, subjects=subjects, components={"m": FakeMetric(), **components})


@attrs.frozen
class Wants:
    wants = ("eval.complete",)

    def write(self, events):
        return len(events)

    def close(self):
        return 0


@attrs.frozen
class WantsText(Wants):
    wants = "eval.completed"


@attrs.frozen
class WantsTraces(Wants):
    wants = ("route.decided", "eval.completed")


@attrs.frozen
class Hybird:
    judge_kind = "hybird"

    def judge(self, subject, children):
        return Judgment(0.5)


@attrs.frozen
class AcceptsText(Hybird):
    judge_kind = "llm"
    accepts = "row"


@attrs.frozen
class Gentle:
    concurrency = "2"


@attrs.frozen
class Halt:
    label_options = ("on",)
    on: str = "m"

    def observe(self, record):
        return None


@attrs.frozen
class NoLabels(Halt):
    @property
    def label_options(self):
        return self.labels


DECLARED = {
    "event type": ("metrics: [m]\nsinks: [c]", Wants(), r"wants has 'eval\.complete', which is no type of event, did you mean 'eval\.completed'\?"),
    "text of wants": ("metrics: [m]\nsinks: [c]", WantsText(), r"wants is the text 'eval\.completed'; write a tuple: \('eval\.completed',\)"),
    "kind of judge": ("judges: [c]", Hybird(), "judge_kind has 'hybird', which is no kind of judge, did you mean 'hybrid'"),
    "text of accepts": ("judges: [c]", AcceptsText(), r"accepts is the text 'row'; write a tuple: \('row',\)"),
    "concurrency": ("metrics: [m]\nexecutor: c", Gentle(), "concurrency is '2', not an integer of 1 or more"),
    "label options": ("metrics: [m]\nearly_stop: [c]", Halt(), r"label_options is \('on',\), not a mapping of options to tuples of labels"),
    "property": ("metrics: [m]\nearly_stop: [c]", NoLabels(), "label_options raised AttributeError: 'NoLabels' object has no attribute 'labels'"),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARED)
def test_a_value_that_a_run_cannot_use_is_refused_with_its_member_and_place(name):
    text, component, message = DECLARED[name]
    with pytest.raises(RequestError, match=f"c: {message}.*{FILE}"):
        run(text, {"c": component})


def test_a_sink_may_want_events_of_traces():
    assert run("metrics: [m]\nsinks: [c]", {"c": WantsTraces()}).exit_code == 0


@attrs.frozen
class Opens:
    live: object

    @asynccontextmanager
    async def open(self, run):
        yield self.live()


class Observes:
    def observes(self, record):
        return None


class Adds:
    def ad(self, record):
        return None

    def finish(self):
        return {}


class Scores:
    def scores(self, subject):
        return 1.0


@pytest.mark.parametrize(
    ("text", "live", "message"),
    [
        ("metrics: [m]\nearly_stop: [c]", Observes, "Observes: has no observe; rename its 'observes' to 'observe'"),
        ("metrics: [m]\naggregates: [c]", Adds, "Adds: has no add; rename its 'ad' to 'add'"),
        ("metrics: [c]", Scores, "Scores: has no score; rename its 'scores' to 'score'"),
        ("metrics: [m]\nsinks: [c]", Observes, "Observes: has no write, close"),
    ],
)
def test_a_live_object_without_a_member_of_its_kind_is_refused_before_the_run(text, live, message):
    @attrs.frozen
    class Component(Opens):
        tier = "proxy"

    with pytest.raises(PluginError, match=f"Component: {message}{FILE}"):
        run(text, {"c": Component(live)})


@attrs.frozen
class Undecorated:
    async def open(self, run):
        yield MemorySink()


def test_an_open_without_a_decorator_is_named_with_its_class_and_line():
    message = "Undecorated could not be opened: open returns no context manager; decorate it with @contextlib.asynccontextmanager"
    with pytest.raises(PluginError, match=message + FILE):
        run("metrics: [m]\nsinks: [c]", {"c": Undecorated()})


@attrs.frozen
class Interrupts:
    @asynccontextmanager
    async def open(self, run):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:  # as Python 3.11 does for __set_name__
            raise RuntimeError("Error calling __set_name__") from error
        yield


def test_an_interruption_that_a_library_wraps_while_a_component_opens_interrupts_the_run():
    done = run("metrics: [m]\nsinks: [c]", {"c": Interrupts()})
    assert (done.document["stopped"]["reason"], done.exit_code) == ("interrupted", 130)


@attrs.frozen
class Stops:
    answer: dict

    def observe(self, record):
        return self.answer


def test_keys_of_an_early_stop_never_replace_keys_of_the_kernel():
    answer = {"reason": "completed", "plugin": "other", "row_index": 99, "rows": 1}
    done = run("metrics: [m]\nearly_stop: [c]", {"c": Stops(answer)})
    stopped = {"reason": "early_stop", "plugin": "c", "row_index": 0, "rows": 1}
    assert done.document["stopped"] == stopped
    (broken,) = done.document["broken"].values()
    assert broken == "c: observe returned 'reason', a key that dicast writes itself; rename it"


@attrs.frozen
class Finishes:
    answer: object

    def add(self, record):
        return None

    def finish(self):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returned None, not a mapping"),
        ({"rows": [{13}]}, r"the result is not JSON: the result\['rows'\]\[0\] is \{13\}"),
    ],
)
def test_a_wrong_result_of_an_aggregate_is_broken_with_its_key_and_line(answer, message):
    done = run("metrics: [m]\naggregates: [c]", {"c": Finishes(answer)})
    with pytest.raises(AssertionError, match=f"^c: finish: {message}{FILE}$"):
        raise AssertionError(*done.document["broken"].values())


@attrs.frozen
class Compares:
    answer: object

    def compare(self, baseline, variant):
        return self.answer


def test_a_comparison_without_a_result_is_broken_with_its_line(tmp_path):
    ledger = MemoryLedger()
    components = {"m": FakeMetric(), "c": Compares(None), "ledger": ledger}
    subjects = [sample("x", id=str(number)) for number in range(3)]
    run_pipeline("name: a\nmetrics: [m]\nledger: ledger", subjects=subjects, components=components)
    text = "name: a\nmetrics: [m]\nledger: ledger\nbaseline: {run: last, compare: [c]}"
    done = run_pipeline(text, subjects=subjects, components=components)
    (broken,) = done.document["broken"].values()
    assert re.fullmatch(f"c: compare: returned None, not a mapping{FILE}", broken)


@pytest.mark.parametrize(
    ("gate", "code", "passed"),
    [("", 3, None), ("gate: {min_score: 0.5}", 3, None), ("gate: {max_score: 0.5}", 1, False)],
)
def test_a_run_without_a_result_is_undecided_unless_its_gate_failed(gate, code, passed):
    done = run(f"metrics: [m]\naggregates: [c]\n{gate}", {"c": Finishes(None)})
    assert (done.exit_code, done.document["gate"] and done.document["gate"]["passed"]) == (code, passed)
    assert done.document["undecided"] == ([] if code == 1 else ["c has no result"])


@attrs.frozen
class Changes:
    writes = ("words",)

    def add(self, record):
        record["metrics"]["scores"].clear()

    observe = add

    def extract(self, record):
        record["metrics"]["words"] = 1
        return {}

    def finish(self):
        return {}


@attrs.frozen
class Keeps:
    records: list = attrs.field(factory=list, eq=False)

    def add(self, record):
        self.records.append(record)

    def finish(self):
        return {}


CHANGED = f"TypeError: subjects, records and events are read-only, because several components share them; change a copy \\(copy.deepcopy\\){FILE}"


@pytest.mark.parametrize("section", ["aggregates: [c, kept]", "early_stop: [c]\naggregates: [kept]"])
def test_a_change_of_a_record_is_broken_with_its_line_and_no_other_component_sees_it(section):
    kept = Keeps()
    done = run(f"metrics: [m]\n{section}", {"c": Changes(), "kept": kept})
    (broken,) = done.document["broken"].values()
    assert re.fullmatch(f"c: {CHANGED}", broken)
    assert [record["metrics"]["scores"] for record in kept.records] == [{"m": 1.0}] * 3


def test_a_change_of_a_record_by_an_extractor_fails_the_row_with_its_line():
    failure = run("extractors: [c]", {"c": Changes()}, rows=1).document["failed_subjects"][0]
    assert re.fullmatch(f"c: {CHANGED}", failure["error_message"])


@attrs.frozen
class Dearer:
    tier = "truth"

    def estimate(self, subject):
        return Cost("0.01")

    def score(self, subject):
        return Score(1.0, cost=Cost("0.02"))


def test_a_warning_names_the_component_that_costs_more_than_its_estimate():
    (warning,) = [w for w in run("metrics: [c]", {"c": Dearer()}).document["warnings"] if w["kind"] == "overruns"]
    assert warning["label"] == "c"
    assert re.match(r"calls of c that cost more than projected: \d; raise its estimate", warning["message"])


class Passes:
    """A wrapper of a live sink."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_a_value_that_a_wrapper_passes_on_is_checked_too():
    message = "wants has 'eval.complete', which is no type of event, did you mean 'eval.completed'"
    with pytest.raises(PluginError, match=message):
        run("metrics: [m]\nsinks: [c]", {"c": Opens(lambda: Passes(Wants()))})
    assert run("metrics: [m]\nsinks: [c]", {"c": Opens(lambda: Passes(WantsTraces()))}).exit_code == 0


@attrs.frozen
class Tariff:
    def estimate(self, request):
        return 0.01

    async def complete(self, request):
        return Reply("0.5", "m", "stop")


@attrs.frozen
class Asks:
    model: ChatModel

    async def judge(self, subject, children):
        await self.model.complete(ChatRequest("", "how good?"))
        return Judgment(0.5)


def test_an_estimate_of_a_chat_model_that_is_no_cost_is_named_with_its_line():
    failure = run("judges: [c]", {"c": Asks(Tariff())}).document["failed_subjects"][0]
    line = f" \\(tests/kernel/test_component_faults\\.py:{Tariff.estimate.__code__.co_firstlineno}\\)"
    assert re.search(f"estimate must return a dicast.Cost, not 0.01{line}", failure["error_message"])


@attrs.frozen
class Sells:
    async def complete(self, request):
        return Reply("yes", "m", cost=Cost("0.01"))


@attrs.frozen
class Drafts:
    model: ChatModel

    async def produce(self, subject):
        reply = await self.model.complete(ChatRequest((Message("user", "Write."),)))
        return reply if isinstance(reply, Failure) else attrs.evolve(subject, output=reply.text)


def test_a_paid_reply_of_a_tasks_chat_model_without_an_estimate_names_the_model():
    done = run("task: c\nmetrics: [m]\nbudget: {run: 1 usd}", {"c": Drafts(Sells())})
    message = done.document["failed_subjects"][0]["error_message"]
    assert "so no cap can hold. Give its chat model estimate(request), which returns the highest cost" in message


@attrs.frozen
class Text:
    async def complete(self, request):
        return "yes"

    def write(self, events):
        return "all"

    def close(self):
        return 0


@attrs.frozen
class Relays(Asks):
    async def judge(self, subject, children):
        return await self.model.complete(ChatRequest("", "how good?"))


def test_a_wrong_answer_of_a_chat_model_names_its_class_and_line():
    failure = run("judges: [c]", {"c": Relays(Text())}).document["failed_subjects"][0]
    assert re.fullmatch(f"the chat model Text returned 'yes', not a Reply{FILE}", failure["error_message"])


def test_a_wrong_count_of_a_sink_names_its_line():
    done = run("metrics: [m]\nsinks: [c]", {"c": Text()})
    message = f"TypeError: the sink returned 'all', not the number of records that it wrote{FILE}"
    assert re.fullmatch(message, done.document["sinks"]["c"]["error"])


@attrs.frozen
class Twice:
    def subjects(self):
        yield from (sample("x", id="a"), sample("y", id="a"))

    def check(self):
        return "the same digest"


def test_an_id_that_the_check_of_a_source_overlooks_is_refused():
    with pytest.raises(DataError, match="source s yields row 'a' twice; ids are unique within a kind"):
        run_pipeline("source: s\nmetrics: [m]", components={"s": Twice(), "m": FakeMetric()})


def test_a_hook_that_returns_an_object_names_its_class_and_line(plugin):
    source = "@attrs.frozen\nclass Brief:\n    tier = 'proxy'\n    def score(self, subject): return Score(1.0)\n"
    plugin("x", f"{source}@hookimpl\ndef dicast_metrics(): return [Brief()]\n")
    message = r"the hook returns an object of Brief, not the class; return \[Brief\] \(dicast_x\.py:\d+\)"
    with pytest.raises(RequestError, match=message):
        run_pipeline("metrics: [x/brief]", subjects=[sample("x")])
