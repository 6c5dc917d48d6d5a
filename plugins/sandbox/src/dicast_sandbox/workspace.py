"""What a program finds in its workspace: a template, files of the subject, and the output that is judged."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath

import attrs

from dicast import MISSING, ConfigError, Failure, Subject, locate, lookup

TEMPLATE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")

_OUTPUT = ("output", "text")


@attrs.frozen
class Workspace:
    """How a metric fills a workspace; *metric* is its name for messages."""

    metric: str
    files: Mapping[str, str] | str | None
    template: Path | None
    output_file: str
    field: str | None

    @cached_property
    def archive(self) -> bytes | None:
        """The template folder as a tar; read once in a run."""
        return None if self.template is None else _archived(self.template)

    def output(self, subject: Subject) -> str | None:
        """What is judged, as text; None where the field is missing, or there is no output."""
        found = subject.output if self.field is None else locate(subject.output, self.field)
        if found is MISSING or found is None:
            return None
        return found if isinstance(found, str) else json.dumps(found)

    def written(self, subject: Subject, output: str) -> dict[str, bytes] | Failure:
        """The files beside the output's own, by name."""
        known = {**subject.context, **_fields(subject), "output": output, "text": output}
        try:
            found = dict(self._texts(known))
        except LookupError as error:
            return Failure("missing_input", f"{self.metric}: {subject.kind} {subject.id} has no {error.args[0]}")
        wrong = next((name for name in found if not is_inside(name)), None)
        if wrong is not None:
            return Failure("missing_input", f"{self.metric}: {wrong!r} is not the name of a file in the workspace")
        return {name: text.encode(errors="surrogateescape") for name, text in found.items()}

    def _texts(self, known: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        if isinstance(self.files, str):
            given = lookup(known, self.files)
            if not isinstance(given, Mapping):
                raise LookupError(f"{self.files!r} that maps names to texts")  # noqa: TRY004  # of the subject, not of the caller
            yield from ((str(name), _text(value)) for name, value in given.items())
        elif self.files is not None:
            yield from ((name, TEMPLATE.sub(_filler(known), text)) for name, text in self.files.items())

    def takes_output(self) -> bool:
        """Whether the output stands in one of the other files."""
        texts = self.files.values() if isinstance(self.files, Mapping) else ()
        return any(path.split(".")[0] in _OUTPUT for text in texts for path in TEMPLATE.findall(text))


def is_inside(name: str) -> bool:
    """Whether *name* is a relative path that stays in its folder."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def check_template(_: object, __: object, path: Path | None) -> None:
    """An attrs validator for a folder.

    :raises ConfigError: when it is none.
    """
    if path is not None and not path.is_dir():
        raise ConfigError(f"the template {path} is not a folder")


def _fields(subject: Subject) -> dict[str, object]:
    return {
        "id": subject.id,
        "input": subject.input,
        "reference": subject.reference,
        "context": subject.context,
        "session_id": subject.session_id,
    }


def _filler(known: Mapping[str, object]) -> Callable[[re.Match[str]], str]:
    def fill(found: re.Match[str]) -> str:
        value = lookup(known, found[1])
        if value is MISSING or value is None:
            raise LookupError(repr(found[1]))
        return _text(value)

    return fill


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _archived(folder: Path) -> bytes:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, ".", filter=_plain)
    return packed.getvalue()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files, folders and symbolic links, of nobody in particular; what else a folder may hold is left out."""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
