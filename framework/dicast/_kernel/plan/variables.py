"""Variables of the environment in a pipeline file, for the next step after calls that an endpoint refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from .secret_mask import secrets_of

_PLACE = re.compile(r"(?:(\S+) at )?(https?://[^\s?]+?)(?:: |$)")
"""Model and address in the message of a failed call."""

_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")


@attrs.frozen
class FileVariables:
    """Variables of a pipeline file.

    :param named: each text of the file with the value of a variable, and the text with the variable's name in its place.
    """

    named: Mapping[str, str] = attrs.field(factory=dict)

    def details(self, component: object, message: str) -> dict[str, list[str]]:
        """Return the data of a stop after the *message* about a call of *component*: names of variables, never their values.

        ``variables`` have the address or the model of the message; ``empty_variables`` were empty in place of a secret of the component.
        """
        empty = dict.fromkeys(name for secret in secrets_of(component) for name in secret.empty_variables)
        match = _PLACE.search(message)
        texts = [] if match is None else [name for text, name in self.named.items() if _is_of(text, *match.groups())]
        names = dict.fromkeys(name for text in texts for name in _NAME.findall(text))
        lists = {"variables": [*names], "empty_variables": [*empty]}
        return {key: values for key, values in lists.items() if values}


def _is_of(text: str, model: str | None, url: str) -> bool:
    """Return whether *text* is the *model*, or the beginning of the address *url*."""
    address = text.partition("?")[0].rstrip("/")
    return text == model or (address.startswith(("http://", "https://")) and f"{url}/".startswith(f"{address}/"))
