"""Reader of the pipeline file: includes, overrides and environment variables, with the place of every value."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ...toolkit.files import read_bytes
from ...toolkit.json_values import MISSING
from ...toolkit.yaml.reader import Composer
from ..classes import define, evolve, field, frozen
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from ..values.paths import descriptor
from .lost_overrides import check_overrides
from .overrides import ANOTHER, SUITE, apply, put
from .suite_file import Experiment, experiments
from .yaml_nodes import Address, Node, Place, dotted, from_data, kind, merge

__all__ = ["Document", "PipelineFile", "Place", "Source", "dotted", "read_document", "read_pipeline"]

MAX_BYTES = 16 * 1024 * 1024
MAX_INCLUDES = 20
"""Largest depth of nested includes."""

Source = Path | str | Mapping[str, object]

_VARIABLE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


@frozen
class Document:
    """A pipeline as it was read.

    *data* has plain mappings, lists and scalars. *file* is the file as the user wrote it, ``<text>`` or ``<mapping>``. *base* is the folder
    of relative paths in the main file. *experiment* is the experiment's name in a suite. *varied* are the paths that experiments of the
    suite change. *problems* are problems of variables; values with such variables are :data:`MISSING` in *data*. *only* are the labels to
    judge; all if empty. *named* has each text with the value of an environment variable, and the text with the variable's name in its place.
    *empty* has the names of the empty variables of each value with such variables, by its path. *notes* are warnings about overrides, each
    with its kind.
    """

    data: dict[str, object]
    file: str
    base: Path
    root: Node = field(repr=False)
    experiment: str | None = None
    problems: tuple[Problem, ...] = ()
    varied: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    named: Mapping[str, str] = field(factory=dict, repr=False)
    empty: Mapping[Address, tuple[str, ...]] = field(factory=dict, repr=False)
    notes: Sequence[tuple[str, str]] = ()

    def files(self) -> list[Path]:
        """Return the pipeline file and its included files, if its values come from files."""
        places = {(node.place.base, node.place.file) for node in self.root.nodes()}
        named = [base / Path(file).name for base, file in places if not file.startswith("<")]
        return [*([] if self.file.startswith("<") else [Path(self.file)]), *named]

    def place(self, path: Address, key: bool = False) -> Place:
        """Return the place of the value at *path*, or with *key* of its key; else the place of the nearest ancestor."""
        node = self.root.find(path)
        return node.key if key and node.key else node.place

    def place_parts(self, path: Address) -> tuple[str, int | None, int | None]:
        """Return the file, the line and the column of the value at *path*, or of its nearest ancestor."""
        place = self.place(path)
        return place.file, place.line, place.column


@frozen
class PipelineFile:
    """A pipeline file that was read once: *root* has its includes and the overrides, *experiments* are a suite's experiments.

    *problems* are the problems of reading; :meth:`document` raises them. *only* are the labels to judge; all if empty. *chosen* is the
    experiment that runs alone; *resumed* is true if it continues its run of a suite.
    """

    start: Place
    root: Node = field(repr=False)
    experiments: Mapping[str, Experiment]
    environ: Mapping[str, str] = field(repr=False)
    problems: tuple[Problem, ...]
    only: tuple[str, ...] = ()
    chosen: str | None = None
    resumed: bool = False

    @property
    def is_suite(self) -> bool:
        """Whether several experiments run."""
        return bool(self.experiments) and self.chosen is None

    def alone(self, experiment: str, *, resumed: bool = False) -> PipelineFile:
        """Return the pipeline of one *experiment*.

        :param resumed: True if the experiment continues its run. The suite of the run may have had a ``--set`` for other experiments.
        :raises ConfigError: if the file has no experiment of that name.
        """
        if experiment in self.experiments or self.problems:
            return evolve(self, chosen=experiment, resumed=resumed)
        names, near = ", ".join(self.experiments), nearest(experiment, self.experiments)
        known = f"the experiments are {names}" if names else "it has no section experiments"
        hint = "" if near is None else f", did you mean {near!r}?"
        raise ConfigError(
            Problem(f"{self.start.file} has no experiment {experiment!r}; {known}{hint}", path="--experiment")
        )

    def with_ledger(self, at: Path | str) -> PipelineFile:
        """Return the pipeline with its ledger at a path, where other options of the ledger are unchanged, or with the URL or component *at*."""
        place = Place("--ledger", None, None, Path.cwd())
        if isinstance(at, str):
            from .ledger_places import section_of  # imported late: most ledgers are files

            return evolve(self, root=put(self.root, "ledger", from_data(section_of(at), place)))
        options = {"path": str(at).replace("${", "$${")}
        section = self.root.value.get("ledger") if isinstance(self.root.value, dict) else None
        if section is not None and section.value is not None:
            return evolve(self, root=put(self.root, "ledger.path", from_data(options["path"], place)))
        return evolve(self, root=put(self.root, "ledger", from_data({"ledger/sqlite": options}, place)))

    def with_sink(self, sink: Mapping[str, object], flag: str) -> PipelineFile:
        """Return the pipeline with one more *sink*; messages about it name the option *flag* in place of a file."""
        place = Place(flag, None, None, Path.cwd())
        return evolve(self, root=put(self.root, f"sinks.{ANOTHER}", from_data(sink, place)))

    def for_shard(self) -> PipelineFile:
        """Return the pipeline without clauses of the gate that need a plugin that is not installed, because a shard leaves the gate out."""
        from ..contract.registry import CLAUSE_EXTRAS, gate_clauses  # few runs are shards

        gate = self.root.value.get("gate") if isinstance(self.root.value, dict) else None
        if gate is None:
            return self
        missing = CLAUSE_EXTRAS.keys() - gate_clauses().keys()
        clauses = gate.value if isinstance(gate.value, list) else [gate]
        rest = [clause for clause in clauses if not (isinstance(clause.value, dict) and missing & clause.value.keys())]
        if len(rest) == len(clauses):
            return self
        return evolve(self, root=put(self.root, "gate", Node(rest or None, gate.place)))

    def document(self, experiment: str | None = None) -> Document:
        """Return the pipeline, or one *experiment* of a suite, with the values of environment variables.

        Problems of these variables do not raise: they are in ``problems`` of the document.

        :raises ConfigError: with every problem, if the file, an override or the experiment has any.
        """
        reader, root, suite = _Reader(self.environ, problems=[*self.problems]), self.root, self.experiments
        notes: Sequence[tuple[str, str]] = ()
        experiment = self.chosen if experiment is None else experiment
        if experiment is not None and experiment in suite:
            at = (SUITE, experiment, "variables")
            texts = {(*at, name): text for name, text in suite[experiment].variables.items()}
            variables = {
                path[-1]: str(reader.data(Node(text, root.find(path).place), path)) for path, text in texts.items()
            }
            reader = evolve(reader, environ={**self.environ, **variables}, variables=variables)
            judged = suite if self.chosen is None or self.resumed else {experiment: suite[experiment]}
            faults, notes = check_overrides(root, judged, experiment)
            reader.problems += faults
            root = suite[experiment].apply_to(root, reader.problems)
        elif suite:
            message = f"this is a suite of {len(suite)} experiments ({', '.join(suite)}), but a single pipeline is needed here; dicast run runs suites"
            raise ConfigError(root.find((SUITE,)).place.problem(message, (SUITE,)))
        varied = tuple(path for item in suite.values() for path in item.changes)
        is_complete = not reader.problems
        data = cast("dict[str, object]", reader.data(root))  # open returns a mapping, and overrides are below it
        file = self.start.file
        if not is_complete:
            raise ConfigError(sorted(reader.problems, key=lambda problem: (problem.file != file, problem.line or 0)))
        problems = tuple(reader.problems)
        return Document(
            data,
            file,
            self.start.base,
            root,
            experiment,
            problems,
            varied,
            self.only,
            reader.named,
            reader.empty,
            notes,
        )


def read_pipeline(
    source: Source, overrides: Mapping[str, object] | Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> PipelineFile:
    """Read a file (Path), YAML text (str) or a mapping, and apply *overrides*.

    Overrides are dotted paths with values, or texts ``scoring.threshold=0.7`` with YAML values.
    """
    reader, start = _Reader(environ), _start(source)
    return assembled_file(start, reader.root(source, start, overrides), environ, reader.problems)


def assembled_file(
    start: Place, root: Node, environ: Mapping[str, str], problems: Sequence[Problem] = ()
) -> PipelineFile:
    """Return the pipeline file that begins at *start*, from its complete *root*; *problems* are the problems of reading."""
    faults = [*problems]
    section = root.value.get(SUITE) if isinstance(root.value, dict) else None
    suite = {} if section is None else experiments(root, section, faults)
    return PipelineFile(start, root, suite, environ, tuple(faults))


def read_document(
    source: Source,
    overrides: Mapping[str, object] | Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    experiment: str | None = None,
) -> Document:
    """Read a document from the arguments of :func:`read_pipeline`; for a suite, one *experiment*.

    Errors are the same as for :meth:`PipelineFile.document`.
    """
    return read_pipeline(source, overrides, environ).document(experiment)


def _start(source: Source) -> Place:
    """Return the start of *source*. Relative paths in a file from a descriptor are relative to the current folder."""
    if isinstance(source, Path):
        return Place(str(source), 1, 1, Path.cwd() if descriptor(source) is not None else source.absolute().parent)
    return Place("<text>", 1, 1, Path.cwd()) if isinstance(source, str) else Place("<mapping>", None, None, Path.cwd())


@define
class _Reader:
    environ: Mapping[str, str]
    budget: int = MAX_BYTES  # characters left for the values of variables
    problems: list[Problem] = field(factory=list)
    read: dict[str, Node] = field(factory=dict)  # a file that is included twice is read and reported once
    variables: Mapping[str, str] = field(factory=dict)  # of the experiment, by name: they are in the file
    named: dict[str, str] = field(factory=dict)
    empty: dict[Address, tuple[str, ...]] = field(factory=dict)

    def root(self, source: Source, start: Place, overrides: Mapping[str, object] | Sequence[str]) -> Node:
        """Return *source* with its includes and *overrides*."""
        root = self.open(source, start, evolve(start, line=None, column=None), (os.path.realpath(start.file),))
        return apply(root, overrides, self.problems) if overrides else root

    def open(self, source: Source, start: Place, origin: Place, chain: tuple[str, ...]) -> Node:
        """Return *source* with its includes; an empty mapping if it cannot be read.

        *start* is its beginning, *origin* the place of its name, *chain* the open files.
        """
        try:
            node = self._compose(source, start, origin)
        except ConfigError as error:
            self.problems.extend(error.problems)
            node = Node({}, start)
        members = dict(node.value) if isinstance(node.value, dict) else {}
        merged = Node({}, start)
        for include in self._includes(members.pop("include", None)):
            merged = merge(merged, self._include(include, chain))
        return merge(merged, evolve(node, value=members))

    def _compose(self, source: Source, start: Place, origin: Place) -> Node:
        if isinstance(source, Mapping):
            return from_data(source, start)
        text = source if isinstance(source, str) else _text(source, start, origin)
        node = Composer(start, self.problems).compose(text)
        if node.value is None:
            raise ConfigError(node.place.problem("the pipeline is empty; it needs at least a source and one metric"))
        if not isinstance(node.value, dict):
            advice = "; give a file as pathlib.Path" if isinstance(node.value, str) else ""
            message = f"a pipeline is a mapping of sections, not {kind(node.value)}{advice}"
            raise ConfigError(node.place.problem(message))
        return node

    def _includes(self, node: Node | None) -> list[Node]:
        if node is None:
            return []
        nodes = node.value if isinstance(node.value, list) else [node]
        for item in nodes:
            if not isinstance(item.value, str) or "\0" in item.value:
                message = f"include takes a file or a list of files, not {kind(item.value)}"
                self.problems.append(item.place.problem(message, ("include",), item.value))
        return [item for item in nodes if isinstance(item.value, str) and "\0" not in item.value]

    def _include(self, node: Node, chain: tuple[str, ...]) -> Node:
        written = self.data(node, ("include",))
        if not isinstance(written, str):  # a variable in it is not set
            return Node({}, node.place)
        path = node.place.base / written
        resolved = os.path.realpath(path)
        if resolved in chain or len(chain) > MAX_INCLUDES:
            names = " -> ".join(map(os.path.basename, (*chain, resolved)))
            message = f"the includes are circular, or more than {MAX_INCLUDES} files deep: {names}"
            self.problems.append(node.place.problem(message, ("include",), written))
            return Node({}, node.place)
        if resolved not in self.read:
            start = Place(str(Path(node.place.file).parent / written), 1, 1, path.absolute().parent)
            self.read[resolved] = self.open(path, start, node.place, (*chain, resolved))
        return self.read[resolved]

    def data(self, node: Node, path: Address = ()) -> object:
        """Return *node* as plain data with the values of environment variables, and MISSING for a value with an invalid variable."""
        if isinstance(node.value, dict):
            return {name: self.data(child, (*path, name)) for name, child in node.value.items()}
        if isinstance(node.value, list):
            return [self.data(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node.value, str) and "${" in node.value:
            before = len(self.problems)
            text = _VARIABLE.sub(lambda match: self._variable(match, node, path), node.value)
            if len(self.problems) > before:
                return MISSING
            if (named := _VARIABLE.sub(self._name, node.value)) != text:
                self.named[text] = named
            variables = dict.fromkeys(match[1] for match in _VARIABLE.finditer(node.value) if self._is_empty(match))
            self.empty |= {path: tuple(variables)} if variables else {}
            return text
        return node.value

    def _is_empty(self, match: re.Match[str]) -> bool:
        """Return whether *match* is a variable that has no value and no default."""
        name, default = match.groups()
        return name is not None and name not in self.variables and not (default or self.environ.get(name))

    def _name(self, match: re.Match[str]) -> str:
        """Return the variable as the file has it, or its value if the file has the value, or its default if that counts."""
        name, default = match.groups()
        if match[0] == "$${":
            return "${"
        return self.variables.get(name, match[0]) if self.environ.get(name) else default or ""

    def _variable(self, match: re.Match[str], node: Node, path: Address) -> str:
        """Return the replacement for ``${NAME}``, ``${NAME:-default}`` (if unset or empty) or ``$${``."""
        name, default = match.groups()
        if match[0] == "$${":
            return "${"
        if name is None:
            message = "'${' begins no ${NAME} or ${NAME:-default}; write $${ for a plain ${"
            self.problems.append(node.place.problem(message, path, node.value))
            return ""
        if self.budget < 0:  # reported already
            return ""
        value = self.environ.get(name)
        if value is None and default is None:
            from difflib import get_close_matches  # needed only if a variable is not set

            hint = next((near for near in get_close_matches(name, self.environ) if _is_misspelt(name, near)), None)
            message = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            self.problems.append(node.place.problem(message, path, node.value, hint))
        replacement = value or default or ""
        self.budget -= len(replacement)
        if self.budget < 0:
            message = f"the values of variables have more than 16 MiB of text; ${{{name}}} is {len(replacement):,} characters long"
            self.problems.append(node.place.problem(message, path))
        return replacement


def _is_misspelt(name: str, near: str) -> bool:
    """Return True if *name* is similar to *near* in each word; ``JUDGE_KEY`` and ``JUDGE_URL`` are different names."""
    words, near_words = name.split("_"), near.split("_")
    return len(words) != len(near_words) or all(map(nearest, words, ([other] for other in near_words)))


def _text(path: Path, start: Place, origin: Place) -> str:
    """Return a file's text; *origin* is the place that names the file."""
    if path.is_fifo() and descriptor(path) is None:  # a named pipe can be read once, but a pipeline is read more often
        raise ConfigError(origin.problem(f"{path} is a named pipe; write its content to a file", value=str(path)))
    try:
        content = read_bytes(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            message = f"{path.name} is larger than {MAX_BYTES // 2**20} MiB; keep data in separate files"
            raise ConfigError(origin.problem(message, value=str(path))) from error
        raise ConfigError(_unreadable(path, error, origin)) from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = start.after(content[: error.start].decode())
        message = f"byte {error.start} (0x{content[error.start]:02x}) is not UTF-8; save the file as UTF-8"
        raise ConfigError(place.problem(message)) from error


def _unreadable(path: Path, error: Exception, origin: Place) -> Problem:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    names = [near.name for near in path.parent.glob("*")] if isinstance(error, FileNotFoundError) else []
    hint = nearest(path.name, names)
    name = "the file" if origin.file == str(path) else path.name or path
    return origin.problem(f"cannot read {name}: {reason}", value=str(path), hint=hint)
