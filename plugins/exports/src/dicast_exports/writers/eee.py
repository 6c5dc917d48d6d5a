"""The results of a run as a record of Every Eval Ever (``eval.schema.json``, version 0.3.0)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.metadata import version
from typing import Any

from dicast import Event
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.exporting import ExportCounts, ExportedRun

SCHEMA = "0.3.0"
_UNKNOWN = "unknown"


def write_record(run: ExportedRun, file: AtomicFile) -> ExportCounts:
    """Write a record with a result for each label that has a mean.

    The model is the model that the judged content names; several models, or none, are ``unknown``, and are counted.

    :raises ConfigError: if the run has not ended.
    """
    document: Mapping[str, Any] = run.document()
    start, left_out = next(run.events("run.started")), Counter[str]()
    models = sorted(
        {str(event.payload["model"]) for event in run.events("llm.call_completed") if event.payload.get("model")}
    )
    if len(models) != 1:
        left_out["models that wrote the outputs; the format has one"] = len(models)
    model = models[0] if len(models) == 1 else _UNKNOWN
    name, time = str(document["name"]), str(int(datetime.fromisoformat(start.time).timestamp()))
    results = [*_results(document, start, left_out)]
    for label, count in (
        ("subjects that failed", document["failed"]),
        ("results of single subjects", document["scored"]),
    ):
        if count:
            left_out[label] += count
    details = {"deployment_type": _UNKNOWN, "model_availability": _UNKNOWN, "models": json.dumps(models)}
    record = {
        "schema_version": SCHEMA,
        "evaluation_id": f"{name}/{model}/{time}",
        "evaluation_timestamp": time,
        "retrieved_timestamp": time,
        "source_metadata": {
            "source_name": name,
            "source_type": "evaluation_run",
            "source_organization_name": _UNKNOWN,
            "evaluator_relationship": "other",
            "additional_details": {"run_id": run.run_id, "source_organization": "not recorded by dicast"},
        },
        "eval_library": {"name": "dicast", "version": version("dicast-kernel")},
        "model_info": {"name": model, "id": model, "additional_details": details},
        "evaluation_results": results,
    }
    file.write(json.dumps(record, indent=2, ensure_ascii=True).encode() + b"\n")
    return ExportCounts(len(results), "results", {reason: count for reason, count in left_out.items() if count})


def _results(document: Mapping[str, Any], start: Event, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    payload: Mapping[str, Any] = start.payload
    fingerprints = payload.get("fingerprints") or {}
    for group in ("labels", "metrics", "judges", "recorded"):
        for label, figures in (document.get(group) or {}).items():
            if group != "labels" and label in document["labels"]:
                continue
            if figures.get("mean") is None:
                left_out["labels without a mean"] += 1
                continue
            data = {"dataset_name": str(document["name"]), "source_type": "other"}
            if "data" in fingerprints:
                data["source_version"] = fingerprints["data"]
            is_raw = figures.get("scale") == "raw"
            bounds = {} if is_raw else {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
            yield {
                "evaluation_result_id": f"{document['run_id']}/{label}",
                "evaluation_name": str(document["name"]),
                "source_data": data,
                "metric_config": {"metric_id": label, "metric_name": label, "lower_is_better": False, **bounds,
                                  "additional_details": {"group": group, "basis": str(figures.get("basis"))}},
                "score_details": {"score": figures["mean"], "uncertainty": _uncertainty(figures)},
            }  # fmt: skip


def _uncertainty(figures: Mapping[str, Any]) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": figures["scored"]}
    if figures.get("ci_low") is not None:
        uncertainty["confidence_interval"] = {
            "lower": figures["ci_low"], "upper": figures["ci_high"], "confidence_level": 0.95, "method": str(figures["ci_method"]),
        }  # fmt: skip
    return uncertainty
