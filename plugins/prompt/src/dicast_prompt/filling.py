"""Recorded templates, rendered for a row that the model was asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from dicast import ConfigError, Failure
from dicast.toolkit.gallery import MediaMode
from dicast.toolkit.media import Urls

from .bounds import Unrenderable
from .criterion import Criterion
from .media import Printing
from .template import Template

_ROLES: tuple[Literal["system", "user"], ...] = ("system", "user")


@attrs.frozen
class _Markers:
    """Options under which media are markers."""

    texts: Mapping[str, Mapping[str, str]]
    media: MediaMode = "mark"
    urls: Urls = "mark"

    def prompts(self) -> Mapping[str, Criterion]:
        return {name: Criterion(prompt.get("system"), prompt.get("user")) for name, prompt in self.texts.items()}


def filled(
    texts: Mapping[str, Mapping[str, str]], row: Mapping[str, object]
) -> Mapping[str, Mapping[str, str]] | Failure:
    """Return the recorded templates *texts*, by criterion and role, as rendered for the values of *row*; a Failure if one cannot be."""
    names = {name: value for name, value in row.items() if value is not None}
    try:
        printing = Printing.of(names, _Markers(texts))
        return {
            name: {
                role: printing.message(role, Template.of(prompt[role], f"template {role}")).content
                for role in _ROLES
                if role in prompt
            }
            for name, prompt in texts.items()
        }
    except (ConfigError, Unrenderable) as error:
        return Failure("missing_input", str(error))
