"""Application of unified diffs to archives in memory, like ``git apply`` without a file on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .archive import Archive, File

if TYPE_CHECKING:
    from unidiff.patch import Hunk, PatchedFile, PatchSet

MAX_CHARACTERS = 1024**2
"""Largest number of characters of a patch."""

_NOWHERE = "/dev/null"
_PREFIX = re.compile(r"[abciow12]/")  # git's prefix of names, by its configuration
_BINARY = re.compile(r"^(?:GIT binary patch|Binary files? )", re.MULTILINE)
_URL = re.compile(r"^diff --git .*://", re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\(?:[abtnvfr"\\]|[0-3][0-7]{2}))*)"')
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = dict(zip('abtnvfr"\\', '\a\b\t\n\v\f\r"\\', strict=True))
_SIGNATURE = "--"  # end of a mail that git wrote
_BYTES = "latin-1"  # each byte is a character: contents need not be UTF-8, and diffs are read as text


class PatchError(Exception):
    """Patch that does not apply, with the reason as message."""


def is_inside(name: str) -> bool:
    """Return whether *name* is a relative path of a file that stays inside its folder."""
    path = PurePosixPath(name)
    is_file = bool(path.parts) and not name.endswith(("/", "/."))
    return is_file and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def apply_patch(archive: Archive, text: str) -> Archive:
    """Return *archive* after the unified diff in *text*.

    Text around the diff is ignored, such as fences of Markdown. Every line of context has to exist, but may be at another
    place than in the diff; of several places the nearest counts.

    :raises PatchError: if the diff does not apply, or there is none, or it would write outside the workspace.
    """
    changed: dict[str, File | None] = {}
    for file in _parse_patch(text):
        _apply_file(archive, changed, file)
    for name in (name for name, file in changed.items() if file is not None):
        _check_place(archive, changed, name)
    return archive.with_files(changed)


def _parse_patch(text: str) -> Sequence[PatchedFile]:
    from unidiff.errors import UnidiffParseError  # only patches need it
    from unidiff.patch import PatchSet

    if len(text) > MAX_CHARACTERS:
        raise PatchError(f"the patch has {len(text)} characters, more than {MAX_CHARACTERS}")
    if _BINARY.search(text):
        raise PatchError("the patch has a binary file; only text can be patched")
    if _URL.search(text):  # unidiff tries all ways to parse a URL, and there are too many
        raise PatchError("the patch names a URL as a file")
    try:
        lines = _split_lines(f"{text}\n".encode(errors="surrogatepass").decode(_BYTES))
        patch = PatchSet(lines)
    except (UnidiffParseError, ValueError) as error:  # ValueError: a number with thousands of digits
        raise PatchError(f"the patch cannot be read: {error}") from error
    if not patch:
        raise PatchError("there is no patch in the output")
    _check_read(patch, lines)
    return patch


def _check_read(patch: PatchSet, lines: Sequence[str]) -> None:
    """Check that the parser has skipped no line that was meant to be applied.

    :raises PatchError: if a file has nothing to apply, or a line of a hunk or its header was parsed as text around the diff.
    """
    for file in patch:
        if not (file or _has_other_changes(file)) or not all(hunk.added or hunk.removed for hunk in file):
            raise PatchError(f"the patch names {file.target_file} without a change")
    applied = {line.diff_line_no for file in patch for hunk in file for line in hunk if line.diff_line_no}
    applied |= {number - 1 for number in applied}  # the header of a hunk
    before, behind = "", False  # after a line of a hunk, or of the names of a file
    for number, (line, after) in enumerate(pairwise([*lines, ""]), 1):
        if number not in applied and _is_stray(before, line, after, behind):
            raise PatchError(f"line {number} of the patch belongs to no hunk: {line.rstrip()!r}")
        before, behind = line, number in applied or line.startswith(("--- ", "+++ ", "\\"))


def _has_other_changes(file: PatchedFile) -> bool:
    """Return whether *file* changes in more than its hunks: it is new, deleted, renamed or copied, or has another mode."""
    modes = {file.source_mode, file.target_mode} - {None}
    changes = ("new file mode", "deleted file mode", "rename from", "copy from")
    return len(modes) == 2 or any(line.startswith(changes) for line in file.patch_info or ())


def _is_stray(before: str, line: str, after: str, behind: bool) -> bool:
    """Return whether *line* looks like a line of a hunk: it starts neither another file nor a mail's signature, and is not text around the diff."""
    if line.startswith("+++ "):
        return not before.startswith("--- ")
    if line.rstrip() == _SIGNATURE or (line.startswith("--- ") and after.startswith("+++ ")):
        return False
    return line.startswith("@@") or (behind and line.startswith(("+", "-", " ")))


def _apply_file(archive: Archive, changed: dict[str, File | None], file: PatchedFile) -> None:
    """Add the result of one file of the patch to *changed*."""
    source, target = _parse_name(file.source_file), _parse_name(file.target_file)
    if file.is_symlink or file.is_submodule:
        raise PatchError(f"{target or source} is a link, and links are not patched")
    moves = [line.split(" from ")[0] for line in file.patch_info or () if line.startswith(("rename from", "copy from"))]
    if source and target and source != target and not moves:
        source = target  # names of a handmade diff: a.py.orig and a.py
    name = target or source
    if target and source != target and _current_file(archive, changed, target) is not None:
        raise PatchError(f"{name} is there already")
    before = File(b"") if source is None else _current_file(archive, changed, source)
    if before is None:
        raise PatchError(f"{source} is not there")
    after = _apply_hunks(name, before.content, file)
    if target is None and after:
        raise PatchError(f"{name} has more content than the patch deletes")
    if source and (target is None or "rename" in moves):
        changed[source] = None
    if target:
        executable = before.executable if file.target_mode is None else file.target_mode == "100755"
        changed[target] = File(after, executable)


def _parse_name(text: str) -> str | None:
    """Return the name of a file in the workspace; None for /dev/null."""
    if text == _NOWHERE:
        return None
    name = text.rstrip("\r")
    if name.startswith('"'):
        name = _unquote(name)
    if prefix := _PREFIX.match(name):
        name = name[prefix.end() :]
    if not is_inside(name):
        raise PatchError(f"{name!r} is not the name of a file in the workspace")
    return str(PurePosixPath(name.encode(_BYTES).decode(errors="surrogateescape")))


def _unquote(name: str) -> str:
    """Return the name that git wrote as *name*, in quotes, as in C."""
    quoted = _QUOTED.fullmatch(name)
    if quoted is None:
        raise PatchError(f"{name!r} is not quoted as git quotes names")
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1]) or chr(int(match[1], 8)), quoted[1])


def _current_file(archive: Archive, changed: dict[str, File | None], name: str | None) -> File | None:
    if name in changed:
        return changed[name]
    member = archive.members.get(name or "")
    if member is None:
        return None
    if not member.isreg():
        raise PatchError(f"{name} is a link or a folder, and those are not patched")
    return archive.read(member.name)


def _check_place(archive: Archive, changed: dict[str, File | None], name: str) -> None:
    """Check that the parents of *name* are folders, not links, and that *name* itself is not a folder."""
    above = [str(path) for path in PurePosixPath(name).parents][:-1]
    for path in above:
        member = archive.members.get(path)
        if changed.get(path) or (path not in changed and member is not None and not member.isdir()):
            raise PatchError(f"{name} cannot be: {path} is not a folder")
    if name not in archive.members and any(other.startswith(f"{name}/") for other in archive.members):
        raise PatchError(f"{name} is a folder")


def _apply_hunks(name: str | None, content: bytes, file: PatchedFile) -> bytes:
    """Return *content* with all hunks of *file* applied.

    Each line is mapped to one character, so that hunks can be searched as texts.
    """
    signs: dict[str, str] = {}
    text = _encode_lines(_split_lines(content.decode(_BYTES)), signs)
    parts, done, shift = [], 0, 0
    for number, hunk in enumerate(file, 1):
        old, new = (_encode_lines(side, signs) for side in _hunk_sides(hunk))
        expected = hunk.source_start - bool(old) + shift
        at = _find_lines(text, old, expected, done)
        if at is None:
            raise PatchError(f"hunk {number} of {name} (line {hunk.source_start}) does not apply")
        shift += at - expected
        parts += [text[done:at], new]
        done = at + len(old)
    lines = {sign: line for line, sign in signs.items()}
    return "".join(lines[sign] for sign in "".join([*parts, text[done:]])).encode(_BYTES)


def _split_lines(text: str) -> list[str]:
    return list(StringIO(text, newline="\n"))


def _encode_lines(lines: Sequence[str], signs: dict[str, str]) -> str:
    try:
        return "".join(signs.setdefault(line, chr(len(signs))) for line in lines)
    except ValueError as error:
        raise PatchError(f"the file has more than {len(signs)} different lines") from error


def _hunk_sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    """Return the lines that *hunk* removes and the lines that it adds, both with the context."""
    old: list[str] = []
    new: list[str] = []
    last: list[list[str]] = []
    for line in hunk:
        if line.line_type == "\\":  # the previous line has no line end
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
        elif line.line_type:
            last = {" ": [old, new], "-": [old], "+": [new]}[line.line_type]
            for side in last:
                side.append(line.value)
    return old, new


def _find_lines(text: str, old: str, expected: int, begin: int) -> int | None:
    """Return the place of *old* in *text* that is nearest to *expected* and not before *begin*; None if there is none."""
    if expected >= begin and text.startswith(old, expected):
        return expected
    places = [text.find(old, max(expected, begin))]
    end = max(begin, expected + len(old) - 1)
    backwards = text[begin:end][::-1].find(old[::-1])  # rfind may take time proportional to the product of both lengths
    if backwards >= 0:
        places.append(min(end, len(text)) - backwards - len(old))
    return min((place for place in places if place >= 0), key=lambda place: abs(place - expected), default=None)
