"""Options of components that send HTTP requests: fields with their checks, and the values that a client needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from math import inf
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import attrs

from ..._kernel.values import Secret
from ..._kernel.values.bounds import Within
from ..._kernel.values.errors import ConfigError
from ..http_reply import MAX_REPLY_BYTES

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEMES = ("http", "https")

REASONING_TOKENS = 4_096
"""The default of ``max_reasoning_tokens`` for a model that reasons."""


@attrs.frozen
class ClientLimits:
    """Limits of a client, under the names of the options."""

    timeout: float | None = 60.0
    retries: int = 3
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    unreachable_at_start: int = 10
    unreachable_later: int = 50
    max_reply_bytes: int = MAX_REPLY_BYTES

    @classmethod
    def of(cls, component: object) -> Self:
        """Return the options of *component* that have these names, and the default for others."""
        names = [field.name for field in attrs.fields(cls) if hasattr(component, field.name)]
        return cls(**{name: getattr(component, name) for name in names})

    @property
    def connecting(self) -> float:
        """Seconds to wait for a connection; less than for a try, to tell a try without a connection from a slow one."""
        return 20.0 if self.timeout is None else min(self.timeout / 2, 20.0)


@attrs.frozen
class Address:
    """The endpoint that a client asks.

    :param base: the address that paths are appended to; its query is sent with each request. Empty if a library of the provider has it.
    :param model: the name of the model, for messages.
    :param option: the name of the option that has the address, for messages.
    :param reply_option: the name of the option that has the limit of the reply's size.
    """

    base: str
    model: str | None = None
    option: str = "base_url"
    reply_option: str = "max_reply_bytes"

    def url(self, path: str = "") -> str:
        """Return the address of *path*, with the query of the endpoint's address and that of *path*."""
        path, _, extra = path.partition("?")
        parts = urlsplit(self.base)
        query = "&".join(filter(None, (parts.query, extra)))
        full_path = f"{parts.path.rstrip('/')}{path}" if path else parts.path
        return urlunsplit(parts._replace(path=full_path, query=query, fragment=""))

    def display(self, path: str = "") -> str:
        """Return the model and the address of *path* without its query, for messages."""
        url = self.url(path).partition("?")[0]
        return f"{self.model} at {url}" if self.model and url else self.model or url


def key() -> Any:
    """Return a field for a key, None by default."""
    return attrs.field(default=None, validator=check_secret, metadata={"counts": False})


def timeout(seconds: float = 60.0) -> Any:
    """Return a field for ``timeout``: the seconds that one try takes at most."""
    check = Within(0, inf, "more than 0 seconds", open=True)
    return attrs.field(default=seconds, validator=check, metadata={"counts": False})


def per_minute() -> Any:
    """Return a field for ``requests_per_minute`` or ``tokens_per_minute``, without a limit by default."""
    return attrs.field(default=None, validator=Within(0, inf, "more than 0", open=True), metadata={"counts": False})


def retries(number: int = 3) -> Any:
    """Return a field for ``retries``."""
    return attrs.field(default=number, validator=Within(0, inf, "0 or more"), metadata={"counts": False})


def unreachable(number: int) -> Any:
    """Return a field for ``unreachable_at_start`` (10) or ``unreachable_later`` (50)."""
    return attrs.field(default=number, validator=Within(1, inf, "1 or more"), metadata={"counts": False})


def reply_bytes() -> Any:
    """Return a field for ``max_reply_bytes``."""
    return attrs.field(default=MAX_REPLY_BYTES, validator=Within(1, inf, "1 or more"), metadata={"counts": False})


def proxy() -> Any:
    """Return a field for the address of an HTTP proxy, a secret."""
    return attrs.field(default=None, validator=_check_proxy, metadata={"counts": False})


def headers(*, later: bool = False) -> Any:
    """Return a field for further headers, whose values are texts or secrets.

    :param later: whether the component had no such option at first, so that older ledgers lack it.
    """
    return attrs.field(factory=dict, validator=check_header_values, metadata={"later": True} if later else {})


def is_address(url: str, schemes: Iterable[str] = _SCHEMES) -> bool:
    """Return whether *url* is an address with a host and one of *schemes*."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no valid host or port; the error's text may hold a password
        return False


def is_loopback(url: str) -> bool:
    """Return whether the host of *url* is this machine, without a look-up of names."""
    host = (urlsplit(url).hostname or "").rstrip(".") if is_address(url) else ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def has_password(url: str) -> bool:
    """Return whether *url* may have a user name or a password; an ``@`` in the path of an address is neither."""
    return "@" in (urlsplit(url).netloc if is_address(url) else url)


def check_address(url: str, option: str, instead: str = "api_key or in headers") -> None:
    """Refuse a *url* that is not an address or has a password. The message does not show a password.

    Call it in ``__attrs_post_init__``: the error of a field's validator would show the value.

    :raises ConfigError: naming *option*, and *instead*, the options for secrets.
    """
    if has_password(url):
        raise ConfigError(f"{option} holds a user name or a password; give them as {instead}")
    if not url:
        raise ConfigError(f"{option} is empty; give it an http:// or https:// address")
    if not is_address(url):
        raise ConfigError(f"{option} is no http:// or https:// address: {url!r}")


def check_url(component: object, attribute: attrs.Attribute[Any], url: str | None) -> None:
    """Refuse a *url* that is not an address, as an attrs validator. An address with a password passes; :func:`check_address` refuses it."""
    if url is not None and not has_password(url) and not is_address(url):
        raise ValueError(f"invalid value for {attribute.name}, expected an http:// or https:// address, got {url!r}")


def assumed_free(model: str, address: str) -> list[str]:
    """Return the assumption that *model* at a loopback *address* is free, for the summary."""
    plain = address.partition("?")[0]
    return [f"{model} at {plain} is free, as its address is a loopback address; write price to count a cost"]


def changed_options(component: Any, names: Iterable[str]) -> dict[str, object]:
    """Return the options *names* of *component* that are set to another value than their default."""
    fields = attrs.fields_dict(type(component))
    values = {name: getattr(component, name) for name in names}
    return {name: value for name, value in values.items() if value and value != fields[name].default}


def reasoning_tokens(component: Any, models: re.Pattern[str], *, has_reasoned: bool) -> int:
    """Return the tokens for reasoning in one try: ``max_reasoning_tokens``, else a default for models that reason.

    :param models: the pattern of the names of models that reason.
    :param has_reasoned: whether the model was seen to reason.
    """
    if component.max_reasoning_tokens is not None:
        return int(component.max_reasoning_tokens)
    name = component.model.lower().rpartition("/")[2]
    has_effort = component.reasoning_effort not in (None, "none")
    return REASONING_TOKENS if has_reasoned or has_effort or models.match(name) else 0


def check_secret(component: object, attribute: attrs.Attribute[Any], secret: Secret | None) -> None:
    """Refuse a secret that no header can carry, as an attrs validator."""
    if secret is not None and _CONTROL.search(secret.value):
        raise ValueError(f"{attribute.name} holds a line break or another character that no header can carry")


def check_header_values(
    component: object, attribute: attrs.Attribute[Any], headers: Mapping[str, str | Secret]
) -> None:
    """Refuse headers that no request can have, as an attrs validator. A message has the name of a header, never its value."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a header")
        if _CONTROL.search(value if isinstance(value, str) else value.value):
            raise ValueError(f"the header {name} holds a line break or another character that no header can carry")


def _check_proxy(component: object, attribute: attrs.Attribute[Any], proxy: Secret | None) -> None:
    if proxy is not None and not is_address(proxy.value, ("http",)):
        raise ValueError("proxy is no http:// address")


def plain_headers(headers: Mapping[str, str | Secret]) -> dict[str, str]:
    """Return *headers* with the values of secrets, as they are sent."""
    return {name: value if isinstance(value, str) else value.value for name, value in headers.items()}


def secret_values(*sources: Secret | Mapping[str, str | Secret] | None) -> set[str]:
    """Return the values of all secrets in *sources*, which are secrets or mappings; for an address also its password."""
    secrets: list[Secret] = []
    for item in sources:
        values = item.values() if isinstance(item, Mapping) else (item,)
        secrets += [value for value in values if isinstance(value, Secret)]
    texts = {secret.value for secret in secrets}
    return texts | {urlsplit(text).password or "" for text in texts if is_address(text)} - {""}
