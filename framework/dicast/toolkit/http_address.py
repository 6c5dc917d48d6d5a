"""What clients of HTTP are told in the pipeline file: an address, and headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import attrs

from .._kernel.values import Secret
from .._kernel.values.errors import ConfigError

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_url(url: str) -> None:
    """Refuse an option ``url`` that is no address, or holds a password, which the message does not show.

    For ``__attrs_post_init__``: what a field's validator refuses is shown with the value.

    :raises ConfigError: saying what to write.
    """
    if "@" in (urlsplit(url).netloc if _is_address(url) else url):
        raise ConfigError("url holds a user name or a password; give them in headers")
    if not _is_address(url):
        raise ConfigError(f"invalid value for url, expected an http:// or https:// address, got {url!r}")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_headers(
    component: object, attribute: attrs.Attribute[Mapping[str, Secret]], headers: Mapping[str, Secret]
) -> None:
    """Refuse headers that no request can have: a validator of a field of them.

    :raises ConfigError: naming the header, never its value.
    """
    for name, secret in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be the name of a header")
        if _CONTROL.search(secret.value):
            raise ConfigError(f"the header {name} holds a line break or another character that none can carry")
