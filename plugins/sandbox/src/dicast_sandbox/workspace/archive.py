"""Folders as tars in memory: the initial content of a workspace, before and after a patch."""

from __future__ import annotations

import stat
import tarfile
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path

import attrs

from dicast import ConfigError
from dicast.toolkit.files import open_file

FORMAT = tarfile.GNU_FORMAT
"""Format with names as bytes: tar unpacks names that are not valid text without a warning."""


@attrs.frozen
class File:
    """File to be written into an archive."""

    content: bytes
    executable: bool = False


@attrs.frozen(eq=False)
class Archive:
    """Tar without hard links, compression or leading ``./``; *key* identifies its content, and is reported with the scores."""

    key: str = ""
    content: bytes = b""

    @cached_property
    def members(self) -> Mapping[str, tarfile.TarInfo]:
        """Return the members by name."""
        if not self.content:
            return {}
        with tarfile.open(fileobj=BytesIO(self.content), mode="r:") as tar:
            return {member.name: member for member in tar}

    def read(self, name: str) -> File:
        """Return the regular file *name*."""
        member = self.members[name]
        content = self.content[member.offset_data : member.offset_data + member.size]
        return File(content, bool(member.mode & stat.S_IXUSR))

    def with_files(self, changed: Mapping[str, File | None]) -> Archive:
        """Return a copy with other files: *changed* has new files by name, and None for removed files."""
        new = BytesIO()
        with tarfile.open(fileobj=new, mode="w", format=FORMAT) as tar:
            for name, file in changed.items():
                if file is not None:
                    tar.addfile(_member(name, file), BytesIO(file.content))
        unchanged = (self.content[start:end] for start, end in self._unchanged_parts(changed))
        return Archive(self.key, b"".join([*unchanged, new.getvalue()]))

    def _unchanged_parts(self, changed: Mapping[str, object]) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the content with the members that are not *changed*."""
        start = 0
        for name, member in self.members.items():
            if name in changed:
                yield start, member.offset
                start = _next_offset(member)
        if self.members:
            yield start, _next_offset(member)


def pack_folder(folder: Path, limit: int) -> Archive:
    """Return the files, folders and symbolic links of *folder* as an archive, without owners.

    :raises ConfigError: if the archive is larger than *limit* bytes.
    """
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or path.is_file() or path.is_dir():
                _add_path(tar, path, str(path.relative_to(folder)))
            if content.tell() > limit:
                raise ConfigError(f"the template {folder} has more than the {limit} bytes that its profile allows")
    return Archive("template", content.getvalue())


def _add_path(tar: tarfile.TarFile, path: Path, name: str) -> None:
    info = tar.gettarinfo(path, name)
    if info.islnk():  # another name of a file in the archive: a patch may change only one of them
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    info.uid, info.gid, info.uname, info.gname = 0, 0, "", ""
    if not info.isreg():
        tar.addfile(info)
        return
    with open_file(path) as file:
        tar.addfile(info, file)


def _next_offset(member: tarfile.TarInfo) -> int:
    """Return the offset of the member after *member*."""
    blocks, rest = divmod(member.size if member.isreg() else 0, tarfile.BLOCKSIZE)
    return member.offset_data + (blocks + bool(rest)) * tarfile.BLOCKSIZE


def _member(name: str, file: File) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(file.content), 0o755 if file.executable else 0o644
    info.mtime = int(time.time())  # later than build results of the previous file, so that make builds them again
    return info
