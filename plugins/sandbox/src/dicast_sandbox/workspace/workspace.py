"""Workspaces of programs: a template or a checkout, and files of the subject."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Protocol

import attrs

from dicast import ConfigError, Failure, Limits, Subject
from dicast.toolkit.json_values import MISSING, lookup

from .archive import Archive, pack_folder
from .cache import Cache
from .patches import is_inside
from .repository import checkout, resolve_commit

TEMPLATE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")

CACHE_BYTES = 512 * 1024**2
"""Largest size of the cached templates and checkouts, in bytes."""

_OUTPUT = ("output", "text")
_REFS = 10_000
_NAME_BYTES, _PATH_BYTES = 255, 4000  # Linux accepts 4096, including the workspace's path
_COPIES = 2  # a workspace also holds the tar until it is unpacked


@attrs.frozen
class Workspace:
    """Content of a workspace apart from the output: *files* replace files of the *archive*."""

    archive: Archive
    files: Mapping[str, bytes]

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names of all files."""
        return frozenset((*self.archive.members, *self.files))

    def file(self, name: str) -> bytes | None:
        """Return the content of the file *name*; None if there is none."""
        if name in self.files:
            return self.files[name]
        member = self.archive.members.get(name)
        return None if member is None or not member.isreg() else self.archive.read(name).content

    def is_executable(self, name: str) -> bool:
        """Return whether the file *name* looks like an executable program."""
        if name in self.files:
            return self.files[name].startswith(b"#!")
        return bool(self.archive.members[name].mode & 0o111)

    def is_linked(self, name: str) -> bool:
        """Return whether the path *name* has a symbolic link in it."""
        steps = (name, *map(str, PurePosixPath(name).parents))
        return any(self.archive.members[step].issym() for step in steps if step in self.archive.members)

    @property
    def key(self) -> bytes:
        """Return a digest that is equal for equal workspaces."""
        return sha256(repr((self.archive.key, sorted(self.files.items()))).encode(errors="surrogateescape")).digest()


class WorkspaceOptions(Protocol):
    """Options of a metric on its workspaces; :class:`~dicast_sandbox.metrics.metric.SandboxMetric` explains them."""

    @property
    def files(self) -> dict[str, str] | str | None:
        """Return the further files of the workspace, by name."""
        ...

    @property
    def output_file(self) -> str:
        """Return the file of the output."""
        ...

    @property
    def template(self) -> Path | None:
        """Return the folder with the initial content of every workspace."""
        ...

    @property
    def repository(self) -> Path | None:
        """Return the git repository with the initial content."""
        ...

    @property
    def ref(self) -> str:
        """Return the commit of the repository."""
        ...

    @property
    def limits(self) -> Limits:
        """Return the resource limits of a program."""
        ...


class Workspaces:
    """Factory of the workspaces of one run; templates are read once in it, and commits once as long as the cache has space for them."""

    def __init__(self, metric: WorkspaceOptions) -> None:
        self._metric = metric
        self._commits: Cache[str] = Cache(_REFS)
        self._archives: Cache[Archive] = Cache(CACHE_BYTES, lambda archive: len(archive.content))

    async def prepare(self, subject: Subject, output: str) -> Workspace | Failure:
        """Return the workspace of *subject*, with *output* in the files that use it."""
        metric = self._metric
        fields = {**subject.context, **_subject_fields(subject)}
        try:
            files = dict(_read_texts(metric.files, {**fields, "output": output, "text": output}))
            check_names([*files, metric.output_file])
            archive = await self._archive(fields)
        except LookupError as error:
            return _missing_input(f"{subject.kind} {subject.id} has no {error.args[0]}")
        except ConfigError as error:
            return _missing_input(f"{subject.kind} {subject.id}: {error}")
        return Workspace(archive, {name: text.encode(errors="surrogatepass") for name, text in files.items()})

    async def _archive(self, fields: Mapping[str, object]) -> Archive:
        metric, limit = self._metric, self._metric.limits.disk // _COPIES
        if metric.template is not None:
            reading = partial(asyncio.to_thread, pack_folder, metric.template, limit)
            return await self._archives.get(metric.template, reading)
        if metric.repository is None:
            return Archive()
        path, ref = Path(fill_template(str(metric.repository), fields, place=True)), fill_template(metric.ref, fields)
        commit = await self._commits.get((path, ref), partial(asyncio.to_thread, resolve_commit, path, ref))
        return await self._archives.get((path, commit), partial(asyncio.to_thread, checkout, path, commit, limit))


def check_names(names: Iterable[str]) -> None:
    """Check that files of all *names* can exist in one workspace.

    :raises ConfigError: if a name is not a file name, leads outside, or needs a folder with the name of another file.
    """
    paths = {PurePosixPath(name): name for name in names}
    for path, name in paths.items():
        if not is_inside(name) or not _can_be_written(path):
            raise ConfigError(
                f"{name!r} is not the name of a file in the workspace: relative, without '..', 255 bytes a part at most"
            )
        above = next((paths[folder] for folder in path.parents if folder in paths), None)
        if above is not None:
            raise ConfigError(f"{name!r} cannot be a file in the workspace next to {above!r}, which is not a folder")


def _can_be_written(path: PurePosixPath) -> bool:
    """Return whether Linux accepts *path*."""
    if str(path).encode(errors="ignore").decode() != str(path):  # half of a character, as in JSON's "\\ud800"
        return False
    return len(str(path).encode()) <= _PATH_BYTES and all(len(part.encode()) <= _NAME_BYTES for part in path.parts)


def _missing_input(message: str) -> Failure:
    return Failure("missing_input", message)


def takes_output(files: Mapping[str, str] | str | None) -> bool:
    """Return whether one of *files* uses the output."""
    texts = files.values() if isinstance(files, Mapping) else ()
    return any(path.split(".")[0] in _OUTPUT for text in texts for path in TEMPLATE.findall(text))


def fill_template(text: str, fields: Mapping[str, object], *, place: bool = False) -> str:
    """Return *text* with its templates replaced by *fields*; in a *place*, a path, no value leads out of a folder.

    :raises LookupError: with the name of a missing field.
    """
    return TEMPLATE.sub(_filler(fields, place), text)


def _read_texts(files: Mapping[str, str] | str | None, fields: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    if isinstance(files, str):
        mapping = lookup(fields, files)
        if not isinstance(mapping, Mapping):
            raise LookupError(f"{files!r} that maps names to texts")  # noqa: TRY004  # an error of the subject, not of the caller
        yield from ((str(name), _text(value)) for name, value in mapping.items())
    elif files is not None:
        yield from ((name, fill_template(text, fields)) for name, text in files.items())


def _subject_fields(subject: Subject) -> dict[str, object]:
    return {
        "id": subject.id,
        "input": subject.input,
        "reference": subject.reference,
        "context": subject.context,
        "session_id": subject.session_id,
    }


def _filler(fields: Mapping[str, object], place: bool) -> Callable[[re.Match[str]], str]:
    def fill(match: re.Match[str]) -> str:
        value = lookup(fields, match[1])
        if value is MISSING or value is None:
            raise LookupError(repr(match[1]))
        if place and not is_inside(_text(value).rstrip("/")):
            raise ConfigError(f"{match[1]} is {value!r}, and not a relative path without '..'")
        return _text(value)

    return fill


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
