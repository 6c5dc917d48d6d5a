"""Test kit for plugin authors: sample subjects, fakes, pipelines that run in memory, and conformance checks for each kind of component.

Import it in a plugin's own tests. It needs the extra ``dicast-kernel[testing]`` and is not a pytest plugin. Subclass the
conformance class of the kind and name the component; pytest finds the inherited checks::

    from dicast.testing import MetricConformance

    class TestBrevity(MetricConformance):
        metric = "brevity/brevity"
        options = {"words": 20}
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in (
            *(
                "clauses",
                "conformance",
                "executors",
                "experiments",
                "judging",
                "leases",
                "ledgers",
                "models",
                "presets",
            ),
            *("readers", "rubrics", "sinks", "sources"),
        )
    )
)

from .clauses import GateClauseConformance  # noqa: E402  # after the line above, so that failed checks show their values
from .conformance import Conformance  # noqa: E402
from .executors import ExecutorConformance, ShardsConformance  # noqa: E402
from .experiments import (  # noqa: E402
    RECORDS,
    AggregateConformance,
    ComparisonConformance,
    EarlyStopConformance,
    ExtractorConformance,
    TaskConformance,
)
from .fakes import FakeChatModel, FakeJudge, FakeMetric, MemorySink  # noqa: E402
from .judging import JudgeConformance, MetricConformance  # noqa: E402
from .ledger import MemoryLedger  # noqa: E402
from .ledgers import LedgerConformance  # noqa: E402
from .models import REQUESTS, ChatModelConformance  # noqa: E402
from .pipeline import Finished, run_pipeline  # noqa: E402
from .presets import PresetConformance  # noqa: E402
from .readers import ReaderConformance  # noqa: E402
from .rubrics import RubricConformance  # noqa: E402
from .sinks import SinkConformance  # noqa: E402
from .sources import SourceConformance  # noqa: E402
from .subjects import GOLDEN, sample  # noqa: E402

API = 1
"""Number of the API that the kit checks. A plugin that passes it works with each release of this API number."""

__all__ = [
    "API",
    "GOLDEN",
    "RECORDS",
    "REQUESTS",
    "AggregateConformance",
    "ChatModelConformance",
    "ComparisonConformance",
    "Conformance",
    "EarlyStopConformance",
    "ExecutorConformance",
    "ExtractorConformance",
    "FakeChatModel",
    "FakeJudge",
    "FakeMetric",
    "Finished",
    "GateClauseConformance",
    "JudgeConformance",
    "LedgerConformance",
    "MemoryLedger",
    "MemorySink",
    "MetricConformance",
    "PresetConformance",
    "ReaderConformance",
    "RubricConformance",
    "ShardsConformance",
    "SinkConformance",
    "SourceConformance",
    "TaskConformance",
    "run_pipeline",
    "sample",
]
