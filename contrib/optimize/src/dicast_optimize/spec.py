"""The spec file of an optimization."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, DataError, Problem, nearest, pipeline_judges
from dicast.toolkit.dataset import read_dataset
from dicast.toolkit.files import read_text
from dicast.toolkit.overwriting import refuse_overwrite
from dicast.toolkit.scripts import scripts

from .document import Address, Document, read_document
from .intake import Intake, read_intake
from .summary import suggested_budget

Example = Mapping[str, Any]
Check = Callable[[Any], str | None]

AUTO_STOP_BUDGET = 30
SOURCES = ("command", "url", "judge", "metrics", "pipeline")


def _is(what: str, test: Callable[[Any], bool]) -> Check:
    return lambda value: None if test(value) else f"must be {what}"


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


_TEXT = _is("a text that is not blank", lambda value: isinstance(value, str) and bool(value.strip()))
_POSITIVE = _is("a positive integer", lambda value: _is_integer(value) and value > 0)
_BOOL = _is("true or false", lambda value: isinstance(value, bool))
_MAPPING = _is("a mapping", lambda value: isinstance(value, dict) and bool(value))
_COMPONENT = _is("a component, NAME or {NAME: {options}}", lambda value: isinstance(value, str | dict) and bool(value))
_ANY = _is("given", lambda value: value is not None)
_BUDGET = _is("a positive integer, or auto", lambda value: value == "auto" or (_is_integer(value) and value > 0))
_MONEY = _is(
    "an amount with its unit, as in 2.00 usd, or a list of them",
    lambda value: isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value)),
)
_COMMAND = _is(
    "a text, or a list of texts that is not empty",
    lambda value: (
        isinstance(value, str | list)
        and bool(value)
        and all(isinstance(word, str) for word in ([value] if isinstance(value, str) else value))
    ),
)
_RANGE = _is(
    "[lowest, highest]", lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
)

KEYS: Mapping[str, Mapping[str, Check]] = {
    "optimization": {
        "seed": _is("a text", lambda value: isinstance(value, str)),
        "seed_file": _TEXT,
        "name": _TEXT,
        "objective": _TEXT,
        "background": _TEXT,
        "dataset": _TEXT,
        "valset": _TEXT,
        "test": _TEXT,
        "budget": _BUDGET,
        "money": _MONEY,
        "early_stop": _BOOL,
        "early_stop_window": _POSITIVE,
        "early_stop_threshold": _is("a number of 0 or more", lambda value: _is_number(value) and value >= 0),
        "minibatch": _POSITIVE,
        "random_seed": _is("an integer", _is_integer),
        "workers": _POSITIVE,
        "cache": _BOOL,
        "cache_from": _TEXT,
        "run_dir": _TEXT,
        "output": _TEXT,
        "task_model": _TEXT,
    },
    "evaluator": {
        "command": _COMMAND,
        "url": _TEXT,
        "judge": _COMPONENT,
        "metrics": _is("a list of metrics", lambda value: isinstance(value, list) and bool(value)),
        "pipeline": _TEXT,
        "on": _TEXT,
        "kind": _TEXT,
        "cwd": _TEXT,
        "env": _MAPPING,
        "headers": _MAPPING,
        "timeout": _is("a number above 0", lambda value: _is_number(value) and value > 0),
        "score_range": _is("unit or any", lambda value: value in ("unit", "any")),
        "range": _RANGE,
        "preflight": _BOOL,
    },
    "model": {
        "reflection": _COMPONENT,
        "temperature": _is("a number of 0 or more", lambda value: _is_number(value) and value >= 0),
        "max_output_tokens": _POSITIVE,
        "timeout": _is("a number above 0", lambda value: _is_number(value) and value > 0),
        "judges": _is("a list of judges", lambda value: isinstance(value, list) and bool(value)),
    },
    "intake": dict.fromkeys(
        ("artifact_class", "quality_dimensions", "hard_constraints", "evaluation_pattern", "execution_mode"), _ANY
    ),
}
_SOURCE_OPTIONS = {
    "command": ("cwd", "env", "timeout", "score_range", "range", "preflight"),
    "url": ("headers", "timeout", "score_range", "range", "preflight"),
}
"""Options of each kind of evaluator, in addition to ``on`` and ``kind``."""


@attrs.frozen
class Spec:
    """A checked spec file. Paths in it are relative to *folder*."""

    document: Document
    seed: str
    optimization: Mapping[str, Any]
    evaluator: Mapping[str, Any]
    model: Mapping[str, Any]
    intake: Intake
    dataset: Sequence[Example] | None
    valset: Sequence[Example] | None
    test: Sequence[Example] | None

    @property
    def folder(self) -> Path:
        """The folder that paths are relative to."""
        return self.document.folder

    @property
    def name(self) -> str:
        """The spec's name, by default the file's."""
        return str(self.optimization.get("name", self.document.path.stem))

    @property
    def budget(self) -> int:
        """The largest number of evaluations in the search."""
        budget = self.optimization.get("budget", 100)
        return suggested_budget(self.seed) if budget == "auto" else int(budget)

    @property
    def early_stop(self) -> bool:
        """True if a plateau ends the search; by default, if the budget is more than 30."""
        return bool(self.optimization.get("early_stop", self.budget > AUTO_STOP_BUDGET))

    @property
    def validated_on(self) -> str:
        """The split of the comparison: ``valset``, ``dataset``, or ``candidate`` without data."""
        return "valset" if self.valset is not None else "candidate" if self.dataset is None else "dataset"

    @property
    def is_raw(self) -> bool:
        """True if scores are on the evaluator's own scale."""
        if self.source == "pipeline":
            metrics = pipeline_judges(Path(self.folder, self.evaluator["pipeline"])).metrics
            return any(slot.is_raw and slot.weight for slot in metrics)
        named = self.evaluator.get("metrics", [])
        options = [value for metric in named if isinstance(metric, dict) for value in metric.values()]
        return any(_is_raw(value) for value in (self.evaluator, *options))

    @property
    def source(self) -> str:
        """The kind of evaluator: one of :data:`SOURCES`."""
        return next(name for name in SOURCES if name in self.evaluator)


def _is_raw(options: object) -> bool:
    return isinstance(options, Mapping) and options.get("score_range") == "any" and "range" not in options


def read_spec(path: Path, *, needs_model: bool, instead: Mapping[str, Any] | None = None) -> Spec:
    """Read and check the spec at *path* and its data; *instead* replaces keys of ``optimization``.

    :raises RequestError: with all problems.
    """
    document = read_document(path)
    if instead:
        section = document.data.get("optimization") or {}
        if isinstance(section, dict):
            before = {name: value for name, value in section.items() if name != "seed" or "seed_file" not in instead}
            document.data["optimization"] = {**before, **instead}
    return _Reader(document).read(needs_model)


class _Reader:
    """Parser of a spec that collects its problems."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems: list[Problem] = [*document.problems]

    def read(self, needs_model: bool) -> Spec:
        data = self._document.data
        sections = {name: self._section(name, data.get(name, {})) for name in KEYS}
        for name in data.keys() - KEYS.keys():
            self._report((name,), f"unknown section {name!r}; there are {', '.join(KEYS)}", nearest(name, KEYS))
        optimization, evaluator, model = sections["optimization"], sections["evaluator"], sections["model"]
        intake = read_intake(sections["intake"], self._intake_problem)
        seed = self._seed(optimization)
        self._check_evaluator(evaluator, intake)
        self._check_raw(evaluator, optimization)
        if needs_model and "reflection" not in model:
            self._report(("model", "reflection"), "model.reflection names the chat model that proposes candidates")
        self._check_flags(optimization)
        splits = {name: self._records(name, optimization) for name in ("dataset", "valset", "test")}
        if self._problems:
            raise ConfigError(self._problems)
        spec = Spec(self._document, seed, optimization, evaluator, model, intake, **splits)
        if needs_model:
            self._check_budget(spec)
        return spec

    def _report(self, address: Address, message: str, hint: str | None = None, value: object = None) -> None:
        problem = self._document.problem(address, message, value, hint)
        if not any(
            problem.path == reported.path for reported in self._document.problems
        ):  # already reported as unreadable
            self._problems.append(problem)

    def _intake_problem(self, address: Address, message: str, value: object) -> None:
        self._report(("intake", *address), message, value=value)

    def _section(self, name: str, content: object) -> Mapping[str, Any]:
        """Return the valid values of the section *name*, and report the others."""
        if not isinstance(content, dict):
            self._report((name,), f"the section {name} is a mapping", value=content)
            return {}
        good = {}
        for key, value in content.items():
            check = KEYS[name].get(key)
            if check is None:
                self._report((name, key), f"unknown key {key!r} in {name}", nearest(key, KEYS[name]), value)
            elif wrong := check(value):
                self._report((name, key), f"{name}.{key} {wrong}", value=value)
            else:
                good[key] = value
        return good

    def _seed(self, optimization: Mapping[str, Any]) -> str:
        if ("seed" in optimization) == ("seed_file" in optimization):
            both = "both are" if "seed" in optimization else "neither is"
            self._report(("optimization",), f"the text to improve is seed or seed_file, and {both} given")
        if "seed_file" not in optimization:
            return str(optimization.get("seed", ""))
        try:
            return read_text(self._path(optimization["seed_file"]), encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            wrong = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)
            self._report(("optimization", "seed_file"), f"seed_file: {wrong}", value=optimization["seed_file"])
            return ""

    def _path(self, written: str) -> Path:
        return self._document.path.parent / Path(written).expanduser()

    def _check_evaluator(self, evaluator: Mapping[str, Any], intake: Intake) -> None:
        sources = [name for name in SOURCES if name in evaluator]
        if len(sources) != 1:
            state = f"{' and '.join(sources)} are given" if sources else "none is given"
            self._report(("evaluator",), f"provide only one of evaluator.{', evaluator.'.join(SOURCES)}: {state}")
            return
        for name in evaluator.keys() - {sources[0], "on", "kind", *_SOURCE_OPTIONS.get(sources[0], ())}:
            self._report(("evaluator", name), f"evaluator.{name} cannot be combined with evaluator.{sources[0]}")
        needed_source = {"command": "command", "http": "url"}.get(intake.execution_mode or "", sources[0])
        if needed_source != sources[0]:
            wrong = f"intake.execution_mode {intake.execution_mode} needs evaluator.{needed_source}, but {sources[0]} is given"
            self._report(("intake", "execution_mode"), wrong)

    def _check_raw(self, evaluator: Mapping[str, Any], optimization: Mapping[str, Any]) -> None:
        """Refuse an early stop without an explicit threshold on a scale other than [0, 1]."""
        if _is_raw(evaluator) and optimization.get("early_stop") and "early_stop_threshold" not in optimization:
            wrong = "early_stop has no default threshold for raw scores: add early_stop_threshold, or give evaluator a range"
            self._report(("optimization", "early_stop"), wrong)

    def _check_flags(self, optimization: Mapping[str, Any]) -> None:
        for name, needs in (
            ("valset", ("dataset",)),
            ("test", ("dataset",)),
            ("cache_from", ("cache", "run_dir")),
        ):
            lacking = [need for need in needs if not optimization.get(need)]
            if name in optimization and lacking:
                self._report(("optimization", name), f"optimization.{name} requires {' and '.join(lacking)}")
        paths = {
            name: os.path.realpath(self._path(optimization[name]))  # Path.resolve refuses circular links
            for name in ("dataset", "valset", "test")
            if name in optimization
        }
        self._check_output(optimization)
        for name in ("dataset", "valset"):
            if "test" in paths and paths.get(name) == paths["test"]:
                self._report(
                    ("optimization", "test"), f"test is the file of {name}: the held-back split needs its own file"
                )

    def _check_output(self, optimization: Mapping[str, Any]) -> None:
        """Refuse an output file that the optimization reads."""
        if "output" not in optimization:
            return
        named = {
            name: optimization[name] for name in ("seed_file", "dataset", "valset", "test") if name in optimization
        }
        evaluator = self._document.data.get("evaluator")
        pipeline = evaluator.get("pipeline") if isinstance(evaluator, dict) else None
        inputs = {f"optimization.{name}": self._path(str(path)) for name, path in named.items()}
        inputs |= {"the spec": self._document.path} | self._scripts(evaluator)
        inputs |= {"evaluator.pipeline": self._path(pipeline)} if isinstance(pipeline, str) else {}
        try:
            refuse_overwrite(self._path(optimization["output"]), inputs)
        except ConfigError as error:
            self._report(("optimization", "output"), str(error), value=optimization["output"])

    def _scripts(self, evaluator: object) -> dict[str, Path]:
        """Return the scripts named in the evaluator's command."""
        command = evaluator.get("command") if isinstance(evaluator, dict) else None
        words = tuple(command) if isinstance(command, list) else command
        if not isinstance(words, str | tuple) or not all(isinstance(word, str) for word in words):
            return {}
        folder = evaluator.get("cwd", ".") if isinstance(evaluator, dict) else "."
        return {f"evaluator.command {name}": path for name, path in scripts(words, self._path(str(folder))).items()}

    def _records(self, name: str, optimization: Mapping[str, Any]) -> Sequence[Example] | None:
        if name not in optimization:
            return None
        try:
            records = read_dataset(self._path(optimization[name]))
        except DataError as error:
            self._problems.extend(error.problems)
            return None
        if not records:
            self._report(("optimization", name), f"the {name} has no records", value=optimization[name])
        return records

    def _check_budget(self, spec: Spec) -> None:
        split = spec.valset if spec.valset is not None else spec.dataset
        least = 1 if split is None else len(split)
        if spec.budget < least:
            wrong = f"a budget of {spec.budget} calls does not evaluate the seed on the {least} records of {spec.validated_on}"
            raise ConfigError(self._document.problem(("optimization", "budget"), wrong, spec.budget))
