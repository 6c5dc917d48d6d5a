"""The feedback metrics keep the contract."""

from __future__ import annotations

from dicast import Score
from dicast.testing import GOLDEN, FakeMetric, MetricConformance, sample


class TestRetrieval(MetricConformance):
    metric = "feedback/retrieval"
    options = {"measure": "ndcg", "k": 5}


class TestStringSimilarity(MetricConformance):
    metric = "feedback/string_similarity"


class TestClassification(MetricConformance):
    metric = "feedback/classification"
    options = {"labels": ["Canberra", "Sydney"], "field": "answer", "confidence_field": "confidence"}
    subjects = (*GOLDEN, sample({"answer": "Sydney", "confidence": 0.9}, id="same", reference="Sydney"))


class TestMultiObjective(MetricConformance):
    metric = "feedback/multi_objective"
    options = {"objectives": {"text": "feedback/string_similarity", "fake": "fake"}, "weights": {"fake": 2}}
    components = {"fake": FakeMetric(Score(0.5))}


class TestScoresInTheOutput(MetricConformance):
    metric = "feedback/multi_objective"
    options = {"weights": {"confidence": 2}}


class TestCodePipeline(MetricConformance):
    metric = "feedback/code_pipeline"
    options = {"stages": ["build", "run"]}
