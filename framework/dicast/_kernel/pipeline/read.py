"""Reads the pipeline file: includes, overrides and environment variables, with the place of every value."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ...toolkit.files import read_bytes
from ...toolkit.json_values import MISSING
from ...toolkit.yaml_reader import Composer
from ..classes import define, evolve, field, frozen
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from ..values.paths import descriptor
from .overrides import apply
from .suite_file import SECTION, Experiment, experiments
from .yaml_nodes import Address, Node, Place, dotted, from_data, kind, merge

__all__ = ["Document", "PipelineFile", "Place", "Source", "dotted", "read_document", "read_pipeline"]

MAX_BYTES = 16 * 1024 * 1024
MAX_INCLUDES = 20
"""Files that may include one another in a row."""

Source = Path | str | Mapping[str, object]

_VARIABLE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


@frozen
class Document:
    """A pipeline as it was read.

    *data* is plain mappings, lists and scalars; *file* is named as the user wrote it, ``<text>`` or ``<mapping>``;
    *base* is the directory that relative paths in the main file are relative to; *experiment* is which one of a suite it is;
    *varied* are the paths that experiments of the suite change;
    *problems* are those of variables: the values that they stand in are :data:`MISSING` in *data*.
    """

    data: dict[str, object]
    file: str
    base: Path
    root: Node = field(repr=False)
    experiment: str | None = None
    problems: tuple[Problem, ...] = ()
    varied: tuple[str, ...] = ()

    def files(self) -> list[Path]:
        """Return the pipeline file and those that it includes, as far as its values come from files."""
        places = {(node.place.base, node.place.file) for node in self.root.nodes()}
        named = [base / Path(file).name for base, file in places if not file.startswith("<")]
        return [*([] if self.file.startswith("<") else [Path(self.file)]), *named]

    def place(self, path: Address, key: bool = False) -> Place:
        """Return where the value at *path* stands, or with *key* its key; else the nearest ancestor's place."""
        node = self.root.find(path)
        return node.key if key and node.key else node.place


@frozen
class PipelineFile:
    """A pipeline file that was read, once: *root* has its includes and the overrides, *experiments* are those of a suite.

    *problems* are what was wrong so far; :meth:`document` raises them.
    """

    start: Place
    root: Node = field(repr=False)
    experiments: Mapping[str, Experiment]
    environ: Mapping[str, str] = field(repr=False)
    problems: tuple[Problem, ...]

    def document(self, experiment: str | None = None) -> Document:
        """Return the pipeline, or that of one *experiment* of a suite, with the environment's variables in place.

        Raises ConfigError with every problem that was found, unless all of them are the document's own.
        """
        reader, root, suite = _Reader(self.environ, problems=[*self.problems]), self.root, self.experiments
        if experiment is not None and experiment in suite:
            at = (SECTION, experiment, "variables")
            given = {(*at, name): text for name, text in suite[experiment].variables.items()}
            own = {path[-1]: str(reader.data(Node(text, root.find(path).place), path)) for path, text in given.items()}
            reader = evolve(reader, environ={**self.environ, **own})
            root = suite[experiment].laid_on(root, reader.problems)
        elif suite:
            message = f"this is a suite of {len(suite)} experiments ({', '.join(suite)}), which dicast run runs; here one pipeline is needed"
            raise ConfigError(root.find((SECTION,)).place.problem(message, (SECTION,)))
        varied = tuple(path for one in suite.values() for path in one.changes)
        whole = not reader.problems
        data = cast("dict[str, object]", reader.data(root))  # open gives a mapping, and overrides stand below it
        file = self.start.file
        if not whole:
            raise ConfigError(sorted(reader.problems, key=lambda found: (found.file != file, found.line or 0)))
        return Document(data, file, self.start.base, root, experiment, tuple(reader.problems), varied)


def read_pipeline(
    source: Source, overrides: Mapping[str, object] | Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> PipelineFile:
    """Read a file (Path), YAML text (str) or a mapping, then lay *overrides* over it.

    Overrides are dotted paths with values, or texts ``scoring.threshold=0.7`` with YAML values.
    """
    reader, start = _Reader(environ), _start(source)
    root = reader.whole(source, start, overrides)
    section = root.value.get(SECTION) if isinstance(root.value, dict) else None
    found = {} if section is None else experiments(root, section, reader.problems)
    return PipelineFile(start, root, found, environ, tuple(reader.problems))


def read_document(
    source: Source,
    overrides: Mapping[str, object] | Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    experiment: str | None = None,
) -> Document:
    """Read what :func:`read_pipeline` takes; of a suite, one *experiment*. Raises what :meth:`PipelineFile.document` does."""
    return read_pipeline(source, overrides, environ).document(experiment)


def _start(source: Source) -> Place:
    """Return where *source* begins; relative paths in a file that a descriptor gives are relative to the current folder."""
    if isinstance(source, Path):
        return Place(str(source), 1, 1, Path.cwd() if descriptor(source) is not None else source.absolute().parent)
    return Place("<text>", 1, 1, Path.cwd()) if isinstance(source, str) else Place("<mapping>", None, None, Path.cwd())


@define
class _Reader:
    environ: Mapping[str, str]
    room: int = MAX_BYTES  # how much text may still be put in place of variables
    problems: list[Problem] = field(factory=list)
    read: dict[str, Node] = field(factory=dict)  # a file included twice is read, and reported, once

    def whole(self, source: Source, start: Place, overrides: Mapping[str, object] | Sequence[str]) -> Node:
        """Return *source* with its includes and *overrides*."""
        root = self.open(source, start, evolve(start, line=None, column=None), (os.path.realpath(start.file),))
        return apply(root, overrides, self.problems) if overrides else root

    def open(self, source: Source, start: Place, asked: Place, chain: tuple[str, ...]) -> Node:
        """Return *source* with its includes; an empty mapping where it cannot be read.

        *start* is its beginning, *asked* the place where it was named, *chain* the files that are open.
        """
        try:
            node = self._compose(source, start, asked)
        except ConfigError as error:
            self.problems.extend(error.problems)
            node = Node({}, start)
        own = dict(node.value) if isinstance(node.value, dict) else {}
        merged = Node({}, start)
        for include in self._includes(own.pop("include", None)):
            merged = merge(merged, self._include(include, chain))
        return merge(merged, evolve(node, value=own))

    def _compose(self, source: Source, start: Place, asked: Place) -> Node:
        if isinstance(source, Mapping):
            return from_data(source, start)
        text = source if isinstance(source, str) else _text(source, start, asked)
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
        if not isinstance(written, str):  # its variable is not set
            return Node({}, node.place)
        path = node.place.base / written
        resolved = os.path.realpath(path)
        if resolved in chain or len(chain) > MAX_INCLUDES:
            names = " -> ".join(map(os.path.basename, (*chain, resolved)))
            message = f"include goes round in a circle, or is more than {MAX_INCLUDES} files deep: {names}"
            self.problems.append(node.place.problem(message, ("include",), written))
            return Node({}, node.place)
        if resolved not in self.read:
            start = Place(str(Path(node.place.file).parent / written), 1, 1, path.absolute().parent)
            self.read[resolved] = self.open(path, start, node.place, (*chain, resolved))
        return self.read[resolved]

    def data(self, node: Node, path: Address = ()) -> object:
        """Return *node* as plain data, with the environment's variables in place, and MISSING where one is wrong."""
        if isinstance(node.value, dict):
            return {name: self.data(child, (*path, name)) for name, child in node.value.items()}
        if isinstance(node.value, list):
            return [self.data(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node.value, str) and "${" in node.value:
            before = len(self.problems)
            text = _VARIABLE.sub(lambda match: self._variable(match, node, path), node.value)
            return text if len(self.problems) == before else MISSING
        return node.value

    def _variable(self, match: re.Match[str], node: Node, path: Address) -> str:
        """Return what stands for ``${NAME}``, ``${NAME:-default}`` (for an unset or empty one) or ``$${``."""
        name, default = match.groups()
        if match[0] == "$${":
            return "${"
        if name is None:
            message = "'${' begins no ${NAME} or ${NAME:-default}; write $${ for a plain ${"
            self.problems.append(node.place.problem(message, path, node.value))
            return ""
        if self.room < 0:  # which was said
            return ""
        value = self.environ.get(name)
        if value is None and default is None:
            from difflib import get_close_matches  # of no use where all are set

            hint = next((near for near in get_close_matches(name, self.environ) if _is_misspelt(name, near)), None)
            message = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            self.problems.append(node.place.problem(message, path, node.value, hint))
        put = value or default or ""
        self.room -= len(put)
        if self.room < 0:
            message = f"the file has more than 16 MiB of text in place of variables; ${{{name}}} is {len(put):,} characters long"
            self.problems.append(node.place.problem(message, path))
        return put


def _is_misspelt(name: str, near: str) -> bool:
    """Whether *name* is *near* in each word: what has a word of its own, as ``JUDGE_KEY`` beside ``JUDGE_URL``, is another name."""
    words, others = name.split("_"), near.split("_")
    return len(words) != len(others) or all(map(nearest, words, ([other] for other in others)))


def _text(path: Path, start: Place, asked: Place) -> str:
    """Return a file's text; *asked* is where the file was named."""
    if path.is_fifo() and descriptor(path) is None:  # a pipe with a name is read once, and a pipeline more often
        raise ConfigError(asked.problem(f"{path} is a pipe with a name; write it to a file", value=str(path)))
    try:
        content = read_bytes(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            message = f"{path.name} is larger than {MAX_BYTES // 2**20} MiB; keep data in files of their own"
            raise ConfigError(asked.problem(message, value=str(path))) from error
        raise ConfigError(_unreadable(path, error, asked)) from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = start.after(content[: error.start].decode())
        message = f"byte {error.start} (0x{content[error.start]:02x}) is not UTF-8; save the file as UTF-8"
        raise ConfigError(place.problem(message)) from error


def _unreadable(path: Path, error: Exception, asked: Place) -> Problem:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    names = [near.name for near in path.parent.glob("*")] if isinstance(error, FileNotFoundError) else []
    hint = nearest(path.name, names)
    what = "the file" if asked.file == str(path) else path.name or path
    return asked.problem(f"cannot read {what}: {reason}", value=str(path), hint=hint)
