"""A promptfoo configuration as the text of a pipeline, or of a suite, and of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._init.choice import model_of
from .._init.draft import Draft
from .._init.written import FileSection, file_text, one_comment
from .._kernel.pipeline.yaml_nodes import Node
from .._kernel.values.errors import ConfigError, Problem
from .assertions import RUBRIC
from .cases import Case, cases
from .configuration import Losses, data_of, mapping_of, read_node, rendered
from .prompts import Prompt, Provider, prompts, provider, providers

_READ = {"prompts", "providers", "targets", "tests", "defaultTest", "description", "$schema"}
_IDLE = {"sharing", "outputPath", "evaluateOptions", "commandLineOptions", "tags", "metadata", "writeLatestResults"}
_SHOWN = 50
_FORM_ALONE = "No assertion is carried over: this judges only that outputs are not empty."
_ECHOED = {"latency_seconds": 0, "cost": 0}


@attrs.frozen
class _Variant:
    """A prompt with a provider: the *name* of its experiment, and what it sets."""

    name: str
    prompt: Prompt
    provider: Provider

    @property
    def task(self) -> dict[str, Any]:
        return {"prompt/chat": {"model": self.provider.model, **self.prompt.templates, **self.provider.options}}


def taken_over(path: Path, out: Path, model: str | None) -> Draft:
    """The pipeline *out* for the configuration at *path*; *model* is asked where the configuration names none that dicast knows.

    :raises ConfigError: where it cannot be read, or has nothing that can be carried over.
    """
    if path.suffix in (".js", ".ts", ".mjs", ".cjs", ".mts", ".py"):
        raise ConfigError(Problem("only YAML and JSON configurations can be read; write yours as YAML", str(path)))
    configuration, losses = mapping_of(read_node(path)), Losses()
    if not {"prompts", "tests"} & set(configuration):
        raise ConfigError(Problem("this is no promptfoo configuration: it has neither prompts nor tests", str(path)))
    for name in sorted(set(configuration) - _READ - _IDLE):
        losses.add(
            configuration[name].place, name, "dicast has no counterpart; see dicast check and the pages on pipelines"
        )
    variants = _variants(configuration, model, losses)
    rows = cases(configuration, losses)
    if not variants and not any(case.names for case in rows):
        raise ConfigError(Problem("there is no test and no prompt that could be carried over", str(path)))
    with_checks = [case for case in rows if case.carried.checks]
    judge = _judge(configuration, rows, variants, model, losses)
    if with_checks and judge is None:
        for case in rows:
            if not case.carried.checks:
                losses.add(
                    case.place,
                    "a test without an assertion that goes over",
                    "it is left out of the rows; give it a check, or a pipeline of its own",
                )
        rows = with_checks
    target = out.with_name(f"{out.name.partition('.')[0]}.rows.jsonl")
    sections = [
        FileSection({"name": _name(configuration, path)}),
        *_sections(variants, rows, judge, target, losses),
    ]
    lines = "".join(orjson.dumps(row).decode() + "\n" for row in _rows(rows, variants, losses))
    head = [f"Written by dicast init from {path.name}, a configuration of promptfoo ({_count(rows, 'test')})."]
    if losses.found:
        head += ["", "Not carried over:", *(one_comment(line, 200) for line in losses.lines()[:_SHOWN])]
    asks = judge is not None or any(variant.provider.model for variant in variants)
    says = [f"{path} has {_count(rows, 'test')} and {_count(variants, 'pair')} of a prompt and a provider."]
    if losses.found:
        says += ["Not carried over:", *(f"  {line}" for line in losses.lines())]
    if judge is None and not with_checks:
        says.append(_FORM_ALONE)
    untried = "it would ask a model, which may cost money" if asks else None
    if not variants:
        untried = "no prompt and provider makes outputs yet"
    elif len(variants) > 1 and not asks:
        untried = "these are several experiments"
    document = {
        "source": "rows/jsonl",
        "kind": "rows",
        "judged": "as promptfoo did",
        "fields": {},
        "not_carried": losses.document(),
    }
    return Draft({target: lines, out: file_text(head, sections)}, says, document, untried)


def _count(several: Sequence[object], what: str) -> str:
    return f"{len(several)} {what}{'' if len(several) == 1 else 's'}"


def _name(configuration: Mapping[str, Node], path: Path) -> str:
    said = data_of(configuration.get("description"))
    return " ".join(said.split()) if isinstance(said, str) and said.strip() else path.stem


def _variants(configuration: Mapping[str, Node], model: str | None, losses: Losses) -> list[_Variant]:
    """Every prompt with every provider."""
    texts = prompts(configuration.get("prompts"), losses)
    asked = providers(configuration.get("providers", configuration.get("targets")), losses)
    if not asked and model is not None:
        asked = [Provider("model", model_of(model), {})]
    found: list[_Variant] = []
    for text in texts:
        for one in asked:
            name = "-".join([text.name] * (len(texts) > 1) + [one.name] * (len(asked) > 1)) or "only"
            again = sum(name == other.name.partition("_")[0] for other in found)
            found.append(_Variant(f"{name}_{again + 1}" if again else name, text, one))
    return found


def _judge(
    configuration: Mapping[str, Node],
    rows: Sequence[Case],
    variants: Sequence[_Variant],
    model: str | None,
    losses: Losses,
) -> dict[str, Any] | None:
    """``llm/judge`` for the rubrics, where every row has some."""
    given = [case.carried.rubrics for case in rows if case.carried.rubrics]
    if not given:
        return None
    options = mapping_of(mapping_of(configuration.get("defaultTest")).get("options"))
    named = data_of(options.get("provider"))
    known = provider(named if isinstance(named, str) else str((named or {}).get("id")), {})
    grader = (
        model_of(model)
        if model
        else known.model
        if known and known.model
        else next((v.provider.model for v in variants if v.provider.model), None)
    )
    texts = [[text for _, text in rubrics] for rubrics in given]
    why = None
    if grader is None:
        why = "name the model that judges: --model NAME"
    elif len(given) < len(rows):
        why = "only some tests have one: give those rows a pipeline with llm/judge of their own"
    elif any(text != texts[0] for text in texts) and any("{{" in text for several in texts for text in several):
        why = "llm/judge with criteria in words that hold for all rows"
    if why is not None:
        for place, _ in (one for rubrics in given for one in rubrics):
            losses.add(place, RUBRIC, why)
        return None
    if all(text == texts[0] for text in texts):
        return {"llm/judge": {"model": grader, "criteria": texts[0]}}
    return {
        "llm/judge": {
            "model": grader,
            "criteria": ["The output meets the rubric of the row, in its context."],
            "context": ["rubric"],
        }
    }


def _sections(
    variants: Sequence[_Variant], rows: Sequence[Case], judge: dict[str, Any] | None, target: Path, losses: Losses
) -> list[FileSection]:
    source: dict[str, Any] = {"path": target.name, "fields": {"id": "test"}}
    parts: list[FileSection] = []
    if len(variants) == 1 and variants[0].provider.model is not None:
        parts.append(FileSection({"task": variants[0].task}))
    elif len(variants) == 1:
        source["fields"]["output"] = "output"
    elif variants:
        sets = {v.name: {"set": _set(v)} for v in variants}
        parts.append(
            FileSection({"experiments": sets}, ["Each prompt with each provider; dicast compare compares two of them."])
        )
    metrics: list[Any] = []
    scoring: list[FileSection] = []
    if any(case.carried.checks for case in rows):
        threshold = _threshold(rows, losses)
        metrics.append("check/assertions" if threshold is None else {"check/assertions": {"threshold": threshold}})
        least = 1.0 if threshold is None else threshold
        scoring = [
            FileSection({"scoring": {"pass_at": least}}, [f"A row passes with {least:g} of its assertions, by weight."])
        ]
    if judge is not None:
        metrics.append(judge)
    labels = [next(iter(one)) if isinstance(one, dict) else one for one in metrics] or ["metrics"]
    gate = [{"on": label, "min_pass_rate": 1.0} for label in labels]
    about = ["promptfoo fails where any test fails; so does this gate. Lower it where some may."]
    return [
        FileSection(
            {"source": {"rows/jsonl": source}},
            ["One row a test: its variables, and its assertions in the column assert."],
        ),
        *parts,
        FileSection({"metrics": metrics or ["proxy/format"]}, [] if metrics else [_FORM_ALONE]),
        *(scoring if judge is None else []),
        FileSection({"gate": gate if len(gate) > 1 else gate[0]}, about),
    ]


def _set(variant: _Variant) -> dict[str, Any]:
    if variant.provider.model is None:
        return {"source.rows/jsonl.fields.output": f"outputs.{variant.prompt.name}"}
    return {"task": variant.task}


def _threshold(rows: Sequence[Case], losses: Losses) -> float | None:
    """The threshold that all tests share; of others none goes over."""
    found = [case.threshold for case in rows]
    if len(set(found)) == 1:
        return found[0]
    for case in rows:
        if case.threshold is not None:
            losses.add(
                case.place, "threshold of one test", "one holds for all rows: give these a pipeline of their own"
            )
    return None


def _rows(rows: Sequence[Case], variants: Sequence[_Variant], losses: Losses) -> list[dict[str, Any]]:
    """The rows; what promptfoo's echo would answer is their output."""
    echoed = {v.prompt.name: v.prompt for v in variants if v.provider.model is None}
    made = []
    for number, case in enumerate(rows, 1):
        row: dict[str, Any] = {"test": str(number), **case.row()}
        texts = {name: rendered(prompt.text, case.names) for name, prompt in echoed.items()}
        for name, text in texts.items():
            if text is None:
                losses.add(
                    echoed[name].place,
                    "an echoed prompt that is more than names in braces",
                    "write its outputs into the rows",
                )
        outputs = {name: text or "" for name, text in texts.items()}
        if outputs:
            row |= _ECHOED | ({"output": next(iter(outputs.values()))} if len(variants) == 1 else {"outputs": outputs})
        if case.carried.rubrics:
            row["rubric"] = "\n".join(text for _, text in case.carried.rubrics)
        made.append(row)
    return made
