"""Conversion of a promptfoo configuration to the text of a pipeline or a suite, and its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._init.choice import Model, model_of
from .._init.draft import Draft
from .._init.written import FileSection, file_text, one_comment
from .._kernel.values.errors import ConfigError, Problem
from ..toolkit.yaml.nodes import Node
from .assertions import Setting, fault_finder
from .cases import Case, cases, default_test
from .code import CodeFiles
from .configuration import Folders, Losses, as_text, data_of, mapping_of, read_node, rendered, variables_of
from .graders import Graders, grader
from .prompts import Prompt, prompts
from .providers import Provider, providers

_READ = {
    "prompts",
    "providers",
    "targets",
    "tests",
    "scenarios",
    "defaultTest",
    "description",
    "assertionTemplates",
    "$schema",
}
_IDLE = {"sharing", "outputPath", "commandLineOptions", "tags", "metadata", "writeLatestResults"}
_LIMIT = 50
_FORM_ALONE = "No test has an assertion: this judges only that outputs are not empty."
_ECHOED = {"latency_seconds": 0, "cost": 0}


@attrs.frozen
class _Variant:
    """A prompt with a provider: the *name* of its experiment, and its settings."""

    name: str
    prompt: Prompt
    provider: Provider

    @property
    def task(self) -> dict[str, Any]:
        return {"prompt/chat": {"model": self.provider.model, **self.prompt.templates, **self.provider.options}}


@attrs.frozen
class _Takeover:
    """A configuration, read and ready to be written as a pipeline."""

    variants: Sequence[_Variant]
    cases: Sequence[Case]
    setting: Setting

    @property
    def has_assertions(self) -> bool:
        """True if a test has an assertion, converted or not."""
        return any(case.carried.count or case.carried.items for case in self.cases)

    @property
    def judged(self) -> Sequence[Case]:
        """The tests that are judged: all their parts are converted."""
        return [case for case in self.cases if not case.carried.lost]

    @property
    def threshold(self) -> float | None:
        """The threshold that all judged tests share, None if they have different thresholds."""
        shares = {case.threshold for case in self.judged}
        return shares.pop() if len(shares) == 1 else None

    @property
    def echoed(self) -> Mapping[str, Prompt]:
        """The prompts that promptfoo's echo answers, by name."""
        return {variant.prompt.name: variant.prompt for variant in self.variants if variant.provider.model is None}

    @property
    def visible(self) -> Mapping[str, Prompt]:
        """The prompts whose texts judges see as the input, by name; empty if there are no judges, or a variable is called ``input``."""
        if not self.setting.graders.judges or any("input" in case.names for case in self.cases):
            return {}
        return {variant.prompt.name: variant.prompt for variant in self.variants}

    @property
    def asks(self) -> bool:
        """True if a run would ask a model."""
        return bool(self.setting.graders.judges) or any(variant.provider.model for variant in self.variants)


def taken_over(path: Path, out: Path, model: Model | None) -> Draft:
    """Return the draft of the pipeline *out* for the configuration at *path*. *model* is used if the configuration names no model that dicast knows.

    :raises ConfigError: if the configuration cannot be read, or no part of it can be converted.
    """
    if path.suffix in (".js", ".ts", ".mjs", ".cjs", ".mts", ".py"):
        raise ConfigError(Problem("only YAML and JSON configurations can be read; write yours as YAML", str(path)))
    root, losses, folders = mapping_of(read_node(path)), Losses(), Folders(path.parent)
    if not {"prompts", "tests"} & set(root):
        raise ConfigError(Problem("this is no promptfoo configuration: it has neither prompts nor tests", str(path)))
    _lose_sections(root, losses)
    variants = _variants(root, folders, model, losses)
    setting = Setting(
        root,
        folders,
        CodeFiles(folders, out, path.name),
        _graders(default_test(root, folders), variants, model),
        losses,
        fault_finder(),
    )
    takeover = _Takeover(variants, cases(setting), setting)
    if not variants and not any(case.names for case in takeover.cases):
        raise ConfigError(Problem("there is no test and no prompt that could be carried over", str(path)))
    _lose_echoes(takeover)
    _lose_prints(takeover)
    return _draft(takeover, path, out)


def _draft(takeover: _Takeover, path: Path, out: Path) -> Draft:
    losses, code = takeover.setting.losses, takeover.setting.code
    rows = out.with_name(f"{out.name.partition('.')[0]}.rows.jsonl")
    lines = "".join(orjson.dumps(row).decode() + "\n" for row in _rows(takeover))
    sections = [FileSection({"name": _name(takeover.setting.root, path)}), *_sections(takeover, rows)]
    files = {rows: lines, **code.written(), out: file_text(_head(takeover, path, losses), sections)}
    document = {
        "source": "rows/jsonl",
        "kind": "rows",
        "judged": "as promptfoo did",
        "fields": {},
        "tests": len(takeover.cases),
        "not_judged": len(takeover.cases) - len(takeover.judged) if takeover.has_assertions else 0,
        "code": code.names(),
        "not_carried": losses.document(),
    }
    return Draft(files, _says(takeover, path, losses), document, _untried(takeover))


def _head(takeover: _Takeover, path: Path, losses: Losses) -> list[str]:
    """Return the comments at the top of the pipeline."""
    count = _count(len(takeover.cases), "test")
    head = [f"Written by dicast init from {path.name}, a configuration of promptfoo ({count})."]
    lines = losses.lines()
    if lines:
        head += ["", "Not carried over:", *(one_comment(line, 200) for line in lines[:_LIMIT])]
        head += [f"and {len(lines) - _LIMIT} more, in the column not_carried"] if len(lines) > _LIMIT else []
    why = _not_judged(takeover)
    return head + (["", *why] if why else [])


def _not_judged(takeover: _Takeover) -> list[str]:
    """Return lines about the number of tests that are not judged, and the fix; empty if all are judged."""
    lost = len(takeover.cases) - len(takeover.judged) if takeover.has_assertions else 0
    if not lost:
        return []
    are = "is" if lost == 1 else "are"
    return [
        f"{_count(lost, 'test')} of {len(takeover.cases)} {are} not judged: a part does not go over, as the column not_carried says.",
        "A run counts them as failed, never as passed. Write a check of your own, and empty the column.",
    ]


def _says(takeover: _Takeover, path: Path, losses: Losses) -> list[str]:
    """Return the lines that the command prints."""
    count = _count(len(takeover.variants), "pair")
    says = [f"{path} has {_count(len(takeover.cases), 'test')} and {count} of a prompt and a provider."]
    if losses.losses:
        says += ["Not carried over:", *(f"  {line}" for line in losses.lines())]
    says += _not_judged(takeover)
    if not takeover.has_assertions:
        says.append(_FORM_ALONE)
    if names := takeover.setting.code.names():
        says.append(
            f"Assertions in code are in {', '.join(names)}. Read the code; then take the comment off trust, or run with --yes."
        )
    return says


def _untried(takeover: _Takeover) -> str | None:
    """Return why no rows are tried, None if they can be tried."""
    if not takeover.variants:
        return "no prompt and provider makes outputs yet"
    if takeover.asks:
        return "it would ask a model, which may cost money"
    if takeover.setting.code.names():
        return "it would run the code of assertions, which nobody has trusted yet"
    if len(takeover.variants) > 1:
        return "these are several experiments"
    return None if takeover.judged or not takeover.has_assertions else "no test is judged"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _name(root: Mapping[str, Node], path: Path) -> str:
    text = data_of(root.get("description"))
    return " ".join(text.split()) if isinstance(text, str) and text.strip() else path.stem


def _lose_sections(root: Mapping[str, Node], losses: Losses) -> None:
    """Record the sections of the configuration that cannot be converted."""
    options = mapping_of(root.get("evaluateOptions"))
    repeat = data_of(options.get("repeat"))
    if isinstance(repeat, int) and repeat > 1:
        losses.add(options["repeat"].place, f"repeat: {repeat}", "each test is one row; dicast run it several times")
    for name in sorted(set(root) - _READ - _IDLE - {"evaluateOptions"}):
        losses.add(root[name].place, name, "dicast has no counterpart; see the pages on pipelines")


def _variants(root: Mapping[str, Node], folders: Folders, model: Model | None, losses: Losses) -> list[_Variant]:
    """Return each combination of a prompt and a provider."""
    texts = prompts(root.get("prompts"), folders, losses)
    models = providers(root.get("providers", root.get("targets")), folders, losses)
    if not models and model is not None:
        models = [Provider("model", model_of(model), {})]
    result: list[_Variant] = []
    for text in texts:
        for variant in models:
            name = "-".join([text.name] * (len(texts) > 1) + [variant.name] * (len(models) > 1)) or "only"
            again = sum(name == other.name.partition("_")[0] for other in result)
            result.append(_Variant(f"{name}_{again + 1}" if again else name, text, variant))
    return result


def _graders(default: Mapping[str, Node], variants: Sequence[_Variant], model: Model | None) -> Graders:
    """Return the judges: of the user's *model*, else of the grader of the *default* test, else of the first model that makes outputs.

    If a provider has the same *model*, its address and price are used.
    """
    if model is not None:
        models = [variant.provider.model for variant in variants if variant.provider.model]
        matching = (
            options_set for options_set in models if any(options["model"] == model for options in options_set.values())
        )
        return Graders(next(matching, model_of(model)), fixed=True)
    _, candidate = grader(data_of(mapping_of(default.get("options")).get("provider")))
    first = next((variant.provider.model for variant in variants if variant.provider.model), None)
    return Graders(candidate.model if candidate and candidate.model else first)


def _sections(takeover: _Takeover, rows: Path) -> list[FileSection]:
    variants, code = takeover.variants, takeover.setting.code.names()
    fields = {"id": "test"} | ({"error": "not_carried"} if takeover.has_assertions else {})
    source: dict[str, Any] = {"path": rows.name, "fields": fields}
    parts: list[FileSection] = []
    if len(variants) == 1 and variants[0].provider.model is not None:
        parts.append(FileSection({"task": variants[0].task}))
    elif len(variants) == 1:
        source["fields"]["output"] = "output"
    elif variants:
        sets = {
            variant.name: {"set": _set(variant, several=len(takeover.visible) > 1 and not _shared_variables(takeover))}
            for variant in variants
        }
        about = ["Each prompt with each provider; dicast compare compares two of them."]
        if any(name != "task" for check_set in sets.values() for name in check_set["set"]):
            about.append("They read other columns, so that dicast compare needs --allow-incomparable.")
        parts.append(FileSection({"experiments": sets}, about))
    if code:
        parts.append(
            FileSection(
                {"trust": code}, ["Code of assertions runs only with your consent. Read it first."], active=False
            )
        )
    return [
        FileSection(
            {"source": {"rows/jsonl": source}},
            [
                "One row a test: its variables, its assertions in the column assert, and in not_carried why it is not judged."
            ],
        ),
        *parts,
        *_judging(takeover, code),
    ]


def _judging(takeover: _Takeover, code: Sequence[str]) -> list[FileSection]:
    """Return the sections of metrics, scoring and gate."""
    gate = FileSection(
        {"gate": {"min_pass_rate": 1.0}},
        ["promptfoo fails where any test fails; so does this gate. Lower it where some may."],
    )
    if not takeover.has_assertions:
        return [FileSection({"metrics": ["proxy/format"]}, [_FORM_ALONE]), gate]
    share, judges = takeover.threshold, takeover.setting.graders.judges
    options: dict[str, Any] = {} if share is None else {"threshold": share}
    options |= {"judges": judges} if judges else {}
    options |= {"code": list(code)} if code else {}
    metrics = [{"check/assertions": options} if options else "check/assertions"]
    least = 1.0 if share is None else share
    about = (
        "A row passes where all of its assertions hold."
        if share is None
        else f"A row passes with a score of {share:g}."
    )
    return [
        FileSection({"metrics": metrics}),
        FileSection({"scoring": {"pass_at": least}}, [about]),
        gate,
    ]


def _set(variant: _Variant, *, several: bool) -> dict[str, Any]:
    """Return the settings of an experiment; with *several* inputs they select the input of its prompt."""
    visible = {"source.rows/jsonl.fields.input": f"inputs.{variant.prompt.name}"} if several else {}
    if variant.provider.model is None:
        return {**visible, "source.rows/jsonl.fields.output": f"outputs.{variant.prompt.name}"}
    return {**visible, "task": variant.task}


def _lose_prints(takeover: _Takeover) -> None:
    """Record the values that a prompt's template would print differently from promptfoo."""
    for variant in takeover.variants:
        names = {*variables_of(variant.prompt.text)} if variant.provider.model is not None else set()
        for case in takeover.cases:
            for name in sorted(names):
                if isinstance(case.names.get(name), list | dict | bool | float):
                    why = "the prompt would print it otherwise; write it as a text"
                    case.carried.lose(case.place, f"variable {name}: {as_text(case.names[name]):.40}", why)


def _lose_echoes(takeover: _Takeover) -> None:
    """Record the echoed prompts whose texts cannot be computed for the rows."""
    for prompt in takeover.echoed.values():
        for case in takeover.cases:
            if rendered(prompt.text, case.names) is None:
                why = "write its outputs into the rows"
                case.carried.lose(prompt.place, "an echoed prompt that is more than names in braces", why)


def _shared_variables(takeover: _Takeover) -> list[str]:
    """Return the variables that each of several prompts reads; empty for one prompt, or if the prompts read different variables.

    The input of a judge is then the same for all prompts, so that their runs can be compared.
    """
    variables = [{*variables_of(prompt.text)} for prompt in takeover.visible.values()]
    is_shared = len(variables) > 1 and all(names == variables[0] for names in variables)
    return sorted(variables[0]) if is_shared else []


def _inputs(takeover: _Takeover, case: Case) -> dict[str, Any]:
    """Return the columns with the input of *case* that judges see: its prompts, or the variables that all prompts read."""
    if variables := _shared_variables(takeover):
        values = {name: as_text(case.names[name]) for name in variables if name in case.names}
        lines = [text if len(variables) == 1 else f"{name}: {text}" for name, text in values.items()]
        return {"input": "\n".join(lines)}
    texts = {name: rendered(prompt.text, case.names) for name, prompt in takeover.visible.items()}
    if len(texts) == 1:
        return {"input": next(iter(texts.values()))}
    return {"inputs": texts} if texts else {}


def _rows(takeover: _Takeover) -> list[dict[str, Any]]:
    """Return the rows; rows of echoed prompts have promptfoo's output."""
    result = []
    for number, case in enumerate(takeover.cases, 1):
        outputs = {name: rendered(prompt.text, case.names) or "" for name, prompt in takeover.echoed.items()}
        row: dict[str, Any] = {"test": str(number), **_inputs(takeover, case), **case.row()}
        if case.threshold is not None and takeover.threshold is None and "assert" in row:
            row["assert"] = [{"check": "assert_set", "threshold": case.threshold, "assert": row["assert"]}]
        if not takeover.has_assertions:
            row.pop("not_carried", None)
        if outputs:
            single = len(takeover.variants) == 1
            row |= _ECHOED | ({"output": next(iter(outputs.values()))} if single else {"outputs": outputs})
        result.append(row)
    return result
