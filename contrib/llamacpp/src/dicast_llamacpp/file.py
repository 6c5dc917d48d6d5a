"""Search for a model's GGUF file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any

from dicast import ConfigError
from dicast.toolkit.files import file_sha256, open_file

MAGIC = b"GGUF"

_BLOCK, _BLOCKS = 1 << 16, 256
_COPIED = 1 << 20
_CODE = {".py", ".pyc", ".pyi"}
_ABOUT = {".md", ".txt", ".rst", ".html", ".json", ".toml", ".cfg", ".typed"}
"""Suffixes of files that describe a model, but are not part of it."""
_NUMBER = re.compile(r"[-_.]*(?:part|chunk|shard)?[-_.]*\d+$", re.IGNORECASE)


def check_gguf(path: Path) -> None:
    """Check the first bytes of *path*.

    :raises ConfigError: if it cannot be read, or does not start like a GGUF file.
    """
    try:
        with open_file(path) as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigError(f"the model {str(path)!r} cannot be read: {error.strerror or error}") from error
    if head != MAGIC:
        start = f"starts with {head!r}" if head else "is empty"
        raise ConfigError(f"{str(path)!r} is not a GGUF file: it {start}, but a GGUF file starts with {MAGIC!r}")


def sample(path: Path) -> str:
    """Return a digest of the size of *path* and of blocks spread over it. To read all gigabytes would take longer than many runs."""
    size = path.stat().st_size
    digest = sha256(str(size).encode())
    with open_file(path) as file:
        for number in range(_BLOCKS):
            file.seek(max(0, size - _BLOCK) * number // (_BLOCKS - 1))
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def installed(package: str) -> Distribution:
    """Return the distribution called *package*.

    :raises ConfigError: if there is none.
    """
    try:
        return distribution(package)
    except (PackageNotFoundError, ValueError) as error:
        raise ConfigError(f"the package {package!r} is not installed: pip install {package!r}") from error


def check_package(package: str) -> None:
    """Check that the distribution *package* has a GGUF file, whole or in parts, without assembling it.

    :raises ConfigError: if it is not installed, or has no such file, or several.
    """
    distribution = installed(package)
    if _whole_file(package, distribution) is None and not _assembles(distribution) and _module(distribution) is None:
        raise ConfigError(f"the package {package!r} has no GGUF file; name a file by path")


def model_file(package: str) -> Path:
    """Return the GGUF file of the distribution *package*. Parts are assembled at the path that its module names.

    :raises ConfigError: if the distribution has no such file, or several.
    """
    distribution = installed(package)
    path = _whole_file(package, distribution) or _assembled(package, distribution)
    check_gguf(path)
    return path


def _whole_file(package: str, distribution: Distribution) -> Path | None:
    """Return the only GGUF file of *distribution*, or None if it has none.

    :raises ConfigError: if it has several.
    """
    files = [Path(str(file.locate())) for file in distribution.files or () if file.suffix == ".gguf"]
    if len(files) > 1:
        names = ", ".join(sorted(file.name for file in files))
        raise ConfigError(f"the package {package!r} has several GGUF files ({names}); name one of them by path")
    return files[0] if files else None


def _assembles(distribution: Distribution) -> bool:
    """Return whether the source of *distribution* has functions that assemble a model, without importing it."""
    sources = [file for file in distribution.files or () if len(file.parts) > 1 and file.name == "__init__.py"]
    texts = (Path(str(file.locate())).read_text(errors="replace") for file in sources)
    return any("assemble" in text and "default_output_path" in text for text in texts)


def _assembled(package: str, distribution: Distribution) -> Path:
    module = _module(distribution)
    if module is None:
        raise ConfigError(f"the package {package!r} has no GGUF file; name a file by path")
    path = Path(module.default_output_path())
    if not path.exists():
        partial = path.with_name(f"{path.name}.{os.getpid()}")  # another process may assemble it at the same time
        try:
            Path(module.assemble(partial)).replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return path


def _module(distribution: Distribution) -> Any:
    """Return the module of a distribution with parts: it has ``assemble(path)`` and ``default_output_path()``."""
    names = {file.parts[0] for file in distribution.files or () if len(file.parts) > 1 and file.name == "__init__.py"}
    modules = (import_module(name) for name in sorted(names))
    return next(
        (module for module in modules if hasattr(module, "assemble") and hasattr(module, "default_output_path")), None
    )


def part_of(package: str) -> Path:
    """Return the only data file of the distribution *package*: a part of a model.

    :raises ConfigError: if the distribution is not installed, or has no data file, or several.
    """
    files = [file for file in installed(package).files or () if _is_data(file.parts, file.suffix, file.name)]
    if len(files) != 1:
        names = ", ".join(sorted(file.name for file in files)) or "none"
        raise ConfigError(f"the package {package!r} must have one data file, a part of a model; it has {names}")
    return Path(str(files[0].locate()))


def _is_data(parts: Sequence[str], suffix: str, name: str) -> bool:
    is_meta = any(part.endswith((".dist-info", ".egg-info", ".data")) or part == ".." for part in parts)
    return not is_meta and suffix not in _CODE | _ABOUT and bool(suffix) and not name.startswith(".")


def assembled_name(packages: Sequence[str]) -> str:
    """Return a file name for the model with parts in *packages*: the name of the first package without its number."""
    return f"{_NUMBER.sub('', packages[0]) or packages[0]}.gguf"


def cache_folder() -> Path:
    """Return the folder of assembled models: ``dicast/models`` in ``XDG_CACHE_HOME``, by default ``~/.cache``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "dicast" / "models"


def assembled(packages: Sequence[str], digest: str) -> Path:
    """Return the model whose parts are the data files of *packages*, in this order. It is assembled only once.

    The file is in :func:`cache_folder` under its SHA-256 *digest*, which is checked before the file gets its name.

    :raises ConfigError: if a part is missing, the digest differs, or the file cannot be written.
    """
    parts = [part_of(package) for package in packages]
    path = cache_folder() / digest / assembled_name(packages)
    try:
        size = sum(part.stat().st_size for part in parts)
        if not path.is_file() or path.stat().st_size != size:
            _assemble(parts, path, digest)
    except OSError as error:
        raise ConfigError(f"the model {str(path)!r} cannot be assembled: {error.strerror or error}") from error
    check_gguf(path)
    return path


def _assemble(parts: Sequence[Path], path: Path, digest: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")  # another process may assemble the same model
    try:
        with partial.open("wb") as file:
            actual = _joined(parts, file)
        if actual != digest:
            raise ConfigError(_other_digest("the parts together have", actual, digest))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _joined(parts: Sequence[Path], file: IO[bytes]) -> str:
    """Write *parts* one after the other into *file*, and return the SHA-256 of the result."""
    hashed = sha256()
    for part in parts:
        with open_file(part) as source:
            while block := source.read(_COPIED):
                hashed.update(block)
                file.write(block)
    return hashed.hexdigest()


def check_digest(path: Path, digest: str) -> None:
    """Check the SHA-256 of the file *path*.

    :raises ConfigError: if it is not *digest*.
    """
    actual = file_sha256(path)
    if actual != digest:
        raise ConfigError(_other_digest(f"the model {str(path)!r} has", actual, digest))


def _other_digest(subject: str, actual: str, digest: str) -> str:
    return (
        f"{subject} the SHA-256 {actual}, and sha256 is {digest}. Check the packages and their order, or correct sha256"
    )
