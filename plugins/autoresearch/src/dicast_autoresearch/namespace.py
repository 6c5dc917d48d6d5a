"""Running of commands in a checkout: bubblewrap mounts the checkout at the path of the user's working tree."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which

import attrs

from dicast import ConfigError
from dicast.toolkit.files import read_bytes

from .git import Git

OBJECTS = "dicast-objects"
"""The folder in the checkout's ``.git`` where the user's objects are mounted."""

_BASE = ("--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent")
_IN_PLACE = ("lib/python*/site-packages/*.pth", "lib/python*/site-packages/__editable__*.py")


@attrs.frozen
class Namespace:
    """Namespace that mounts a checkout over *root*, and in which every process ends with the command.

    :ivar objects: the user's object database.
    :ivar common: git's folder if it is outside *root*; it is mounted read-only.
    """

    program: str
    root: Path
    objects: Path
    common: Path | None

    def words(self, checkout: Path, links: Mapping[str, Path], unset: Sequence[str], words: Sequence[str]) -> list[str]:
        """Return the command that runs *words* in *checkout*, with *links* read-only and without the variables *unset*."""
        command = [self.program, *_BASE]
        if self.common is not None:
            command += ["--ro-bind", str(self.common), str(self.common)]
        command += ["--bind", str(checkout), str(self.root)]
        command += ["--ro-bind", str(self.objects), str(self.root / ".git" / OBJECTS)]
        for path, source in links.items():
            command += ["--ro-bind", str(source.resolve()), str(self.root / path)]
        for name in unset:
            command += ["--unsetenv", name]
        return [*command, "--chdir", str(self.root), "--", *words]


def find_namespace(git: Git) -> Namespace | None:
    """Return the namespace of *git*; None where bubblewrap is missing or not permitted."""
    program = which("bwrap")
    if program is None or git.root == Path("/"):
        return None
    probe = subprocess.run([program, *_BASE, "--", "true"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if probe.returncode:
        return None
    common = (git.root / git.text("rev-parse", "--git-common-dir")).resolve()
    inside = common.is_relative_to(git.root.resolve())
    return Namespace(program, git.root, git.path("objects").resolve(), None if inside else common)


def refuse_in_place(root: Path, folders: Sequence[Path]) -> None:
    """Refuse environments that import the project from *root*: without a namespace they would measure the user's tree.

    :raises ConfigError: naming the file.
    """
    exact_path = re.compile(re.escape(str(root)) + r"(?![\w.-])")
    for folder in folders:
        for pattern in _IN_PLACE:
            for file in folder.glob(pattern):
                if exact_path.search(read_bytes(file).decode(errors="replace")):
                    raise ConfigError(
                        f"{file}: the environment imports the project from {root}, so the checkout would not be"
                        " measured. Install bubblewrap (bwrap), or install the project without --editable"
                    )
