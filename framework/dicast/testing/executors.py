"""Checks for executors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from .._kernel.api.runs import run
from .._kernel.events import SHARD_COMMITTED
from .._kernel.run.host import ShardHost, Shards
from .._kernel.values import Score, Subject
from .conformance import Conformance
from .fakes import FakeJudge, FakeMetric
from .pipeline import Bench, Finished, run_pipeline
from .subjects import sample

_SUBJECTS = tuple(sample(f"text {number}", id=str(number)) for number in range(12))
_PIPELINE = "metrics: [fake, digits]\njudges: [opinion]\n"


@attrs.frozen
class Digits:
    """Share of digits in the output; it can be sent to other processes."""

    tier = "proxy"

    def score(self, subject: Subject) -> Score:
        """Return the share."""
        return Score(sum(letter.isdigit() for letter in subject.text) / max(1, len(subject.text)))


class ExecutorConformance(Conformance):
    """Checks for an executor. Name it with ``executor = "plugin/name"``.

    The checks run a pipeline with two metrics and a judge. One metric can be sent to other processes.
    """

    kind = "executor"
    executor: str

    def use(self, component: Any, bench: Bench) -> object:
        """Run nothing here: the checks below run a pipeline."""
        return repr(component)

    def run(self, component: Any) -> Finished:
        """Run the pipeline under the executor *component*."""
        fakes = {"fake": FakeMetric(), "digits": Digits(), "opinion": FakeJudge()}
        executor = {} if component is None else {"under-test": component}
        text = f"{_PIPELINE}executor: under-test\n" if executor else _PIPELINE
        return run_pipeline(text, subjects=_SUBJECTS, components={**fakes, **executor})

    def test_concurrency_is_a_positive_integer(self, component: Any) -> None:
        """It is the largest number of subjects that are judged at the same time."""
        concurrency = component.concurrency
        is_positive = type(concurrency) is int and concurrency >= 1
        assert is_positive, f"{self.named} has the concurrency {concurrency!r}, not an integer of 1 or more"

    def test_concurrency_is_the_same_once_it_is_open(self, component: Any, bench: Bench) -> None:
        """The run reads the concurrency of the component, before it is opened."""

        async def of_live(live: Any) -> object:
            return live.concurrency

        other = self.opened(component, bench.folder, of_live)
        assert other == component.concurrency, (
            f"{self.named} has the concurrency {component.concurrency}, and {other!r} once it is open; the component's value counts"
        )

    def test_every_subject_is_judged_once(self, component: Any) -> None:
        """Each subject ends in one verdict or one failure for each label, in whatever process it was judged."""
        run = self.run(component)
        ends = [
            (event.subject_id, event.payload["judge"]) for event in (*run.of("eval.completed"), *run.of("eval.failed"))
        ]
        expected = sorted((subject.id, label) for subject in _SUBJECTS for label in ("metrics", "opinion"))
        missing = sorted(set(expected) - set(ends))
        assert sorted(ends) == expected, (
            f"{self.named}: {len(ends)} of {len(expected)} verdicts, missing: {missing[:3]}"
        )

    def test_verdicts_are_those_of_the_usual_executor(self, component: Any) -> None:
        """An executor decides where the work is done, never the scores."""
        scores = [
            {(verdict.subject_id, verdict.judge): verdict.score for verdict in self.run(part).verdicts}
            for part in (component, None)
        ]
        changed = [key for key in scores[1] if scores[0].get(key) != scores[1][key]]
        assert not changed, (
            f"{self.named} gives {scores[0].get(changed[0])} for {changed[0]}, and dicast/async gives {scores[1][changed[0]]}"
        )


STOP_SECONDS = 30.0
"""Seconds in which an executor has to return once its run was stopped."""


class ShardsConformance(Conformance):
    """Checks for an executor with ``shard``, which has the shards of a run judged by workers. Name it with ``executor = "plugin/name"``.

    The checks run a pipeline of ``rows/jsonl`` and ``proxy/length``, so the workers need these plugins.

    The executor has ``shard: 5`` unless the class has other *options*.
    """

    kind = "executor"
    executor: str
    options: Mapping[str, Any] = MappingProxyType({"shard": 5})

    def use(self, component: Any, bench: Bench) -> object:
        """Run nothing here: the checks below run a pipeline."""
        return repr(component)

    def run(self, bench: Bench, executor: Any) -> Any:
        """Run the pipeline under *executor*, a section of a pipeline."""
        rows = [{"id": str(number), "output": "x" * number, "session_id": str(number // 2)} for number in range(24)]
        path = bench.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return run(
            {
                "source": {"rows/jsonl": {"path": str(path)}},
                "metrics": [{"proxy/length": {"max": 12}}],
                "ledger": {"ledger/sqlite": {"path": str(bench.folder / "ledger.db")}},
                "executor": executor,
            }
        )

    def test_the_result_is_that_of_the_usual_executor(self, bench: Bench) -> None:
        """An executor decides where the work is done, never the scores and their order."""
        scores = [
            [(verdict.subject_id, verdict.score) for verdict in self.run(bench, executor).verdicts]
            for executor in ({self.executor: {**self.options}}, "dicast/async")
        ]
        assert scores[0] == scores[1], f"{self.named} gives {scores[0][:3]}, and dicast/async gives {scores[1][:3]}"

    def test_each_shard_is_committed_once(self, bench: Bench) -> None:
        """The ledger of the run has one commit for each shard."""
        result = self.run(bench, {self.executor: {**self.options}})
        events = result.read((SHARD_COMMITTED,), list)
        numbers, of = sorted(event.payload["number"] for event in events), -(-24 // self.options["shard"])
        assert numbers == [*range(1, of + 1)], f"{self.named} committed the shards {numbers} of {of}"

    def test_it_returns_once_the_run_was_stopped(self, component: Any) -> None:
        """Ctrl-C ends a run; no shard starts after it."""

        async def stopped() -> None:
            stop, commits = asyncio.Event(), list[object]()
            stop.set()
            shards = Shards(1, "0" * 64, {1: {"number": 1, "of": 1, "place": "/dev/null"}})
            async with asyncio.timeout(STOP_SECONDS):
                await component.run(ShardHost({}, stop, shards, commits.append, lambda _: None), shards)
            assert not commits, f"{self.named} committed a shard of a run that was stopped before"

        asyncio.run(stopped())
