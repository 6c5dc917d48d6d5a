"""Write traces of the real MLflow: an answer with feedback and an expectation, and a failed call of a tool."""

from __future__ import annotations

import sys
from pathlib import Path

import mlflow
from mlflow.entities import AssessmentSource, SpanType

folder = Path(sys.argv[1])
mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
mlflow.set_experiment(experiment_id=mlflow.create_experiment("weather", artifact_location=str(folder / "artifacts")))


@mlflow.trace(span_type=SpanType.TOOL)
def weather(city):
    """Return the weather, or fail."""
    if city == "Atlantis":
        raise KeyError("no such city")
    return "22C"


@mlflow.trace(name="assistant")
def answer(city):
    """Answer by a call of the tool."""
    mlflow.update_current_trace(metadata={"mlflow.trace.session": "talk"}, tags={"team": "x"})
    return f"It is {weather(city)}."


answer("Rome")
mlflow.flush_trace_async_logging()
first = mlflow.get_last_active_trace_id()
human, judge = (AssessmentSource(source_type=kind, source_id=kind.lower()) for kind in ("HUMAN", "LLM_JUDGE"))
mlflow.log_feedback(trace_id=first, name="correct", value=True, rationale="as measured", source=human)
mlflow.log_feedback(trace_id=first, name="tone", value=0.5, source=judge)
mlflow.log_expectation(trace_id=first, name="expected", value="22C", source=human)
try:
    answer("Atlantis")
except KeyError:
    mlflow.flush_trace_async_logging()
traces = mlflow.search_traces(return_type="list", order_by=["timestamp_ms ASC"])
with (folder / "traces.jsonl").open("w") as file:
    file.writelines(trace.to_json() + "\n" for trace in traces)
