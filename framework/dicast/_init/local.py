"""``dicast init --model local``: a GGUF file or a package that the user names, and judges with a short form for small models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

import attrs
import click

from .._kernel.contract.registry import Registry
from .._kernel.values.errors import ConfigError
from ..toolkit.files import open_file
from ..toolkit.installing import how_to_install

LOCAL = "local"
"""The name of the option ``--model`` for a model in this process."""

REFERENCE_RUBRIC = "reference-short-v1"

CHARS = 8_000
"""Characters of evidence that leave room for instructions and examples in 4,096 tokens."""

_QUESTION = "GGUF file, or installed package that has one"
_SIGN = b"GGUF"
_EXAMPLES: tuple[tuple[str, str, str, str], ...] = (
    ("When does the shop open?", "It opens at 9 a.m.", "The shop opens at nine.", "yes"),
    ("When does the shop open?", "It opens at noon.", "The shop opens at nine.", "no"),
    ("Is parking free?", "No, you pay 2 euros per hour.", "Parking costs two euros an hour.", "yes"),
    ("Is parking free?", "Yes, you can park for free.", "Parking costs two euros an hour.", "no"),
)


@attrs.frozen
class Local:
    """A model in this process, by its *options* of ``llamacpp/chat``."""

    options: Mapping[str, str]

    @property
    def component(self) -> dict[str, Any]:
        """The model as a pipeline names it."""
        return {"llamacpp/chat": dict(self.options)}


def local_model(gguf: str | None, out: Path) -> Local:
    """Return the model that *gguf* names, a file or a package; for None the user is asked. The path in it is relative to the folder of *out*.

    :raises ConfigError: if ``llamacpp/chat`` is not installed, nothing is named, or the name is neither a GGUF file nor an installed package.
    """
    if "llamacpp" not in Registry().scan():
        raise ConfigError(f"--model local needs llamacpp/chat: {how_to_install('llamacpp')}")
    name = _ask_for_model() if gguf is None else gguf.strip()
    path = Path(name).expanduser()
    if name and path.is_file():
        _check(path)
        return Local({"path": os.path.relpath(path.absolute(), out.absolute().parent)})
    if name.endswith(".gguf") or os.sep in name:
        raise ConfigError(
            f"--gguf {name!r}: there is no such file. Name a GGUF file, or an installed package that has one"
        )
    try:
        distribution(name)
    except (PackageNotFoundError, ValueError) as error:
        message = (
            f"--gguf {name!r} is neither a file nor an installed package. Name a GGUF file, or install the package"
        )
        raise ConfigError(message) from error
    try:
        Registry().find("llamacpp/chat", ("model",)).cls(package=name)
    except ConfigError as error:
        raise ConfigError(f"--gguf {name!r}: {error}") from error
    return Local({"package": name})


def _ask_for_model() -> str:
    """Ask for the file or package.

    :raises ConfigError: if there is no answer.
    """
    try:
        return str(click.prompt(_QUESTION, err=True)).strip()
    except click.Abort as error:
        click.echo(err=True)  # the error has its own line, below the question
        packages = gguf_packages()
        listed = f"; installed packages with a GGUF file: {', '.join(packages)}" if packages else ""
        message = f"--model local needs a model: name it with --gguf FILE.gguf or --gguf PACKAGE{listed}"
        raise ConfigError(message) from error


def gguf_packages() -> list[str]:
    """Return the names of installed distributions that have a GGUF file, or whose names end in ``gguf``."""
    return sorted(
        {
            distribution.name
            for distribution in distributions()
            if distribution.name.casefold().endswith("gguf")
            or any(file.suffix == ".gguf" for file in distribution.files or ())
        }
    )


def _check(path: Path) -> None:
    try:
        with open_file(path) as file:
            head = file.read(len(_SIGN))
    except OSError as error:
        raise ConfigError(f"--gguf {str(path)!r} cannot be read: {error.strerror or error}") from error
    if head != _SIGN:
        raise ConfigError(
            f"--gguf {str(path)!r} is no GGUF file: it begins with {head!r}, and a GGUF file begins with {_SIGN!r}"
        )


def short_judge(criteria: list[str], context: list[str], *, has_reference: bool) -> dict[str, Any]:
    """Return ``llm/judge`` in the short form: by *criteria*; with a reference, by the rubric for references and with examples."""
    options: dict[str, Any] = {"model": "asked", "form": "yes_no", "max_evidence_chars": CHARS}
    options |= {"rubric": REFERENCE_RUBRIC} if has_reference else {"criteria": criteria}
    if context:
        options["context"] = context
    if has_reference:
        keys = ("input", "output", "reference", "answer")
        options["examples"] = [dict(zip(keys, example, strict=True)) for example in _EXAMPLES]
    return {"llm/judge": options}


def short_pairwise() -> dict[str, Any]:
    """Return ``llm/pairwise`` in the short form."""
    return {"llm/pairwise": {"model": "asked", "form": "letter", "max_evidence_chars": CHARS}}
