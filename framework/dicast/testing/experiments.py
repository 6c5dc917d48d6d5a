"""Checks for tasks, extractors, aggregates, comparisons and early stops."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from .._kernel.asking.record import columns, faults, new_record, responses
from .._kernel.contract.define import maybe_await
from .._kernel.contract.plugin_errors import author_place, describe_error, in_brackets
from .._kernel.contract.protocols import estimate
from .._kernel.records.observers import STOP_KEYS
from .._kernel.values import Cost, Failure, Record, Results, Subject
from .._kernel.values.endpoint_errors import AccessRefused
from .._kernel.values.errors import Interrupted, UnknownName
from .._kernel.values.json_form import json_fault
from .._kernel.values.read_only import REFUSED, read_only
from .conformance import Conformance
from .judging import CANCEL_SECONDS, excess, not_ending
from .pipeline import Bench
from .subjects import GOLDEN, read_only_copy


def _record(number: int, **scores: float | None) -> Record:
    content = orjson.dumps({"score": number / 10}).decode()
    responses = {name: {"content": content, "metrics": {"score": number / 10, "cost": 0.001}} for name in scores}
    return {
        "row": {"id": str(number), "input": f"question {number}"},
        "response": responses["clarity"],
        "responses": responses,
        "metrics": {
            "score": number / 10,
            "scores": dict(scores),
            "score_flags": {name: score >= 0.5 for name, score in scores.items() if score is not None},
        },
    }


RECORDS: Sequence[Record] = (
    *(_record(number, clarity=number / 10, depth=1 - number / 20) for number in range(10)),
    _record(10, clarity=None, depth=0.5),
    {
        "row": {"id": "11", "input": "one answer"},
        "response": {"content": "no number at all", "metrics": {}},
        "metrics": {},
    },
    {"row": {"id": "12"}, "metrics": {"score": 0.5, "scores": {"diff/match": 0.5}}},
)
"""Records with two criteria, a missing score, a response without criteria, and a record made from verdicts."""


def _with_subjects(records: Sequence[Record]) -> Sequence[Record]:
    """Return the records as an early stop with ``observes_failures`` gets them: with their subjects, and the record of a failed subject."""
    ids = [str(record["row"]["id"]) for record in records]
    subjects = ({"subject_kind": "row", "subject_id": id_, "session_id": None} for id_ in [*ids, "failed"])
    failed: Record = {"row": {}, "metrics": {}}
    return [{**record, **subject} for record, subject in zip([*records, failed], subjects, strict=True)]


def _json_fault(document: object) -> str | None:
    if (fault := json_fault(document)) is not None:
        return fault
    is_finite = orjson.loads(orjson.dumps(document)) == _plain(document)
    return None if is_finite else "returned a number that is not finite; what is missing is None"


def _plain(value: object) -> object:
    """Return *value* with lists in place of tuples."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _cost(answer: object) -> Cost:
    """Return the cost that the *answer* of a task reports."""
    if isinstance(answer, Failure):
        return answer.cost
    figures = (response.get("metrics", {}).get("cost") or 0 for response in getattr(answer, "responses", {}).values())
    return sum((Cost(str(figure)) for figure in figures), Cost.zero())


def _wrong_answer(answer: object) -> str:
    """Return the message about an answer of a task that is neither a Subject nor a Failure."""
    if isinstance(answer, UnknownName):
        return f"{describe_error(answer)}; return a Failure of a known kind"
    if isinstance(answer, Exception):
        return f"raised {describe_error(answer)}; return a Failure"
    return f"returned {answer!r:.300}, which is neither a Subject nor a Failure"


class TaskConformance(Conformance):
    """Checks for a task. Name it with ``task = "plugin/name"``.

    ``subjects``: the subjects that the task gets; the golden subjects by default.
    """

    kind = "task"
    task: str
    subjects: Sequence[Subject] = GOLDEN

    def task_answers(self, component: Any, bench: Bench) -> list[tuple[Subject, object]]:
        """Return each subject with the task's answer, or with the exception that the task raised."""

        async def ask(live: Any) -> list[tuple[Subject, object]]:
            answers: list[tuple[Subject, object]] = []
            for subject in map(read_only_copy, self.subjects):
                await asyncio.sleep(0)  # a turn of the event loop between calls
                try:
                    answers.append((subject, await maybe_await(live.produce(subject))))
                except Interrupted:
                    raise
                except Exception as error:
                    answers.append((subject, error))
            return answers

        return self.opened(component, bench.folder, ask)

    def use(self, component: Any, bench: Bench) -> object:
        """Return the answers."""
        return [answer for _, answer in self.task_answers(component, bench)]

    def test_makes_an_output_of_every_subject_or_says_why_not(self, component: Any, bench: Bench) -> None:
        """A task returns a Subject or a Failure for any row. It raises only errors that end the run."""
        fair = Subject | Failure | AccessRefused
        wrong = [answer for _, answer in self.task_answers(component, bench) if not isinstance(answer, fair)]
        assert not wrong, f"{self.named}: {_wrong_answer(wrong[0])}"

    def test_the_subject_stays_the_same_one(self, component: Any, bench: Bench) -> None:
        """A task keeps the subject's kind, id, session and parent."""
        for subject, answer in self.task_answers(component, bench):
            if isinstance(answer, Subject):
                for name in ("kind", "id", "session_id", "parent_id"):
                    assert getattr(answer, name) == getattr(subject, name), f"{self.named} changes {name}"

    def test_makes_records(self, component: Any, bench: Bench) -> None:
        """The responses are JSON, and each has its content and its metrics."""
        for subject, answer in self.task_answers(component, bench):
            if isinstance(answer, Subject):
                record = new_record(columns(subject), answer, {})
                for response in responses(record).values():
                    assert isinstance(response.get("content"), str), f"{self.named}: a response without text content"
                    assert isinstance(response.get("metrics"), dict), f"{self.named}: a response without metrics"

    def test_estimate_is_a_cost(self, component: Any, bench: Bench) -> None:
        """The highest cost of one subject is known before the task is called."""

        async def ask(live: Any) -> list[object]:
            priced = live if hasattr(live, "estimate") else component
            return [estimate(priced, subject) for subject in self.subjects]

        wrong = [cost for cost in self.opened(component, bench.folder, ask) if not isinstance(cost, Cost)]
        assert not wrong, f"estimate must return a dicast.Cost, not {wrong[0]!r}"

    def test_costs_no_more_than_the_estimate(self, component: Any, bench: Bench) -> None:
        """A paid call without an estimate, or with one that is too low, breaks every cap. Runs refuse it."""

        async def excesses(live: Any) -> list[str]:
            priced = live if hasattr(live, "estimate") else component
            excess_costs = []
            for subject in self.subjects:
                try:
                    answer = await maybe_await(live.produce(subject))
                except Interrupted:
                    raise
                except Exception:  # noqa: S112  # another check looks at exceptions
                    continue
                if fault := excess(_cost(answer), estimate(priced, subject)):
                    excess_costs.append(f"{self.named} about {subject.id}: {fault}")
            return excess_costs

        excess_costs = self.opened(component, bench.folder, excesses)
        assert not excess_costs, excess_costs[0]

    def test_cancelled_call_ends(self, component: Any, bench: Bench) -> None:
        """A cancelled ``async def`` ends soon. Timeouts and Ctrl-C cancel calls."""

        async def lingering(live: Any) -> list[Subject]:
            if not inspect.iscoroutinefunction(live.produce):
                return []
            return [subject async for subject in not_ending(live.produce, self.subjects)]

        subjects = self.opened(component, bench.folder, lingering)
        assert not subjects, f"still running {CANCEL_SECONDS:g} s after being canceled, about {subjects[0].id}"


class RecordConformance(Conformance):
    """Checks for components that read the ``records``."""

    records: Sequence[Record] = RECORDS
    is_read_only = False

    @property
    def offered(self) -> Sequence[Record]:
        """The records, as read-only copies while a check looks for changes."""
        return [read_only(record) for record in self.records] if self.is_read_only else self.records

    def test_leaves_the_records_as_they_are(self, component: Any, bench: Bench) -> None:
        """All components of a run share a record."""
        before = orjson.dumps(list(self.records))
        self.is_read_only = True
        try:
            self.use(component, bench)
        except TypeError as error:
            if REFUSED in str(error):
                pytest.fail(
                    f"{self.named} changes a record{in_brackets(author_place(error))}; change a copy (copy.deepcopy)"
                )
            raise
        finally:
            self.is_read_only = False
        assert orjson.dumps(list(self.records)) == before, (
            f"{self.named} changes a record; change a copy (copy.deepcopy)"
        )


class ExtractorConformance(RecordConformance):
    """Checks for an extractor. Name it with ``extractor = "plugin/name"``; it reads the ``records``."""

    kind = "extractor"
    extractor: str

    def use(self, component: Any, bench: Bench) -> object:
        """Return the results for all records."""
        return self.extracted(component, bench)

    def extracted(self, component: Any, bench: Bench) -> list[Any]:
        """Return the extractor's result for each record."""

        async def ask(live: Any) -> list[object]:
            results = []
            for record in self.offered:
                await asyncio.sleep(0)  # a turn of the event loop between calls
                results.append(await maybe_await(live.extract(record)))
            return results

        return self.opened(component, bench.folder, ask)

    def test_writes_only_what_it_declares_in_json_under_proper_names(self, component: Any, bench: Bench) -> None:
        """Declared fields let dicast find two extractors that write the same field before a run."""
        for record, fields in zip(self.records, self.extracted(component, bench), strict=True):
            assert isinstance(fields, Mapping), f"{self.named} returned {fields!r:.200}, not a mapping"
            wrong = list(faults(fields, component.writes, record.get("responses", {})))
            assert not wrong, f"{self.named}: {wrong[0]}"

    def test_costs_nothing(self, component: Any, bench: Bench) -> None:
        """An extractor has no estimate, so runs refuse it after a cost. A task, a metric or a judge may pay."""
        costs = [answer.cost for answer in self.extracted(component, bench) if isinstance(answer, Failure)]
        paid = [cost for cost in costs if not cost.is_zero]
        assert not paid, f"{self.named} costs {paid[0]}; pay in a task, a metric or a judge"

    def test_says_the_same_again(self, component: Any, bench: Bench) -> None:
        """A resumed run computes the same records."""
        first, second = self.extracted(component, bench), self.extracted(component, bench)
        assert first == second, f"{self.named} returns other results for the same records the second time"


class AggregateConformance(RecordConformance):
    """Checks for an aggregate. Name it with ``aggregate = "plugin/name"``; it reads the ``records``."""

    kind = "aggregate"
    aggregate: str

    def use(self, component: Any, bench: Bench) -> object:
        """Return the result for all records."""
        return self.finished(component, bench, self.offered)

    def finished(self, component: Any, bench: Bench, records: Sequence[Record]) -> object:
        """Return the aggregate's result for *records*."""

        async def ask(live: Any) -> object:
            for record in records:
                await asyncio.sleep(0)  # as above
                live.add(record)
            return live.finish()

        return self.opened(component, bench.folder, ask)

    def test_comes_to_json_without_made_up_numbers(self, component: Any, bench: Bench) -> None:
        """The result is JSON with finite numbers, for all records, for one record and without records."""
        for records in (self.records, self.records[:1], ()):
            fault = _json_fault(self.finished(component, bench, records))
            assert fault is None, f"{self.named}, of {len(records)} records: {fault}"

    def test_each_run_begins_anew(self, component: Any, bench: Bench) -> None:
        """The live object, not the component, keeps the records of a run."""
        first, second = (self.finished(component, bench, self.records) for _ in range(2))
        assert first == second, (
            f"{self.named} returns another result the second time: it keeps records of an earlier run, or is random"
        )


class ComparisonConformance(RecordConformance):
    """Checks for a comparison. Name it with ``comparison = "plugin/name"``; the two runs have the ``records``."""

    kind = "comparison"
    comparison: str

    def use(self, component: Any, bench: Bench) -> object:
        """Return the comparison of the records with half of them."""
        return self.compared(component, bench, self.offered, self.offered[::2])

    def compared(self, component: Any, bench: Bench, *runs: Sequence[Record]) -> object:
        """Return the comparison of two runs."""
        baseline, variant = (_results(name, records) for name, records in zip("ab", runs, strict=True))

        async def ask(live: Any) -> object:
            return live.compare(baseline, variant)

        return self.opened(component, bench.folder, ask)

    def test_compares_any_two_runs_in_json(self, component: Any, bench: Bench) -> None:
        """The result is JSON for a run against itself, a run with other subjects, a run of one record, and an empty run."""
        records = self.records
        for other in (records, records[::2], records[:1], ()):
            for runs in ((records, other), (other, records)):
                fault = _json_fault(self.compared(component, bench, *runs))
                assert fault is None, f"{self.named}, {len(runs[0])} records against {len(runs[1])}: {fault}"

    def test_says_the_same_again(self, component: Any, bench: Bench) -> None:
        """Random draws use a seed, so the result is reproducible."""
        runs = self.records, self.records[::2]
        first, second = (self.compared(component, bench, *runs) for _ in range(2))
        is_comparable = _json_fault(first) is None  # NaN differs from itself, and another check names it
        assert first == second or not is_comparable, (
            f"{self.named} returns another result for the same runs the second time; draw with a seed"
        )


class EarlyStopConformance(RecordConformance):
    """Checks for an early stop. Name it with ``early_stop = "plugin/name"``; it observes the ``records``."""

    kind = "early_stop"
    early_stop: str

    def use(self, component: Any, bench: Bench) -> object:
        """Return the result for all records."""
        return self.observed(component, bench)

    def observed(self, component: Any, bench: Bench) -> list[object]:
        """Return the answer of the early stop to each record."""

        async def ask(live: Any) -> list[object]:
            results = []
            for record in _with_subjects(self.offered) if getattr(live, "observes_failures", False) else self.offered:
                await asyncio.sleep(0)  # as above
                results.append(live.observe(record))
            return results

        return self.opened(component, bench.folder, ask)

    def test_says_nothing_or_why_in_json(self, component: Any, bench: Bench) -> None:
        """Missing metrics and metrics of another type neither stop the run nor raise an error."""
        try:
            answers = self.observed(component, bench)
        except Exception as error:
            pytest.fail(f"{self.named} raises {describe_error(error)} for a record without its metric")
        for answer in answers:
            fault = None if answer is None else _json_fault(answer)
            assert fault is None, f"{self.named}: {fault}"
            clash = [key for key in STOP_KEYS if isinstance(answer, Mapping) and key in answer]
            assert not clash, f"{self.named} returns {clash[0]!r}, a key that dicast writes itself; rename it"

    def test_each_run_begins_anew(self, component: Any, bench: Bench) -> None:
        """The live object, not the component, keeps the records of a run."""
        first, second = (self.observed(component, bench) for _ in range(2))
        assert first == second, (
            f"{self.named} answers otherwise the second time: it keeps records of an earlier run, or is random"
        )


def _results(name: str, records: Sequence[Record]) -> Results:
    return Results(name, name, lambda: iter([(record["row"]["id"], record) for record in records]))
