"""Paths, variables and the size of the report inside a sandbox."""

from __future__ import annotations

import attrs

from dicast import ConfigError

WORKSPACE = "/tmp/work"  # noqa: S108  # inside
HOME = "/tmp/home"  # noqa: S108  # inside

REPORT_BYTES = 16 * 1024**2
"""Largest size of a file that is read back from a sandbox, in bytes."""


def check_environment(_: object, attribute: attrs.Attribute[dict[str, str]], value: dict[str, str]) -> None:
    """Validate environment variables by name, as an attrs validator.

    :raises ConfigError: if a name is empty or has a ``=``, or a name or value has a NUL.
    """
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            raise ConfigError(
                f"{attribute.name} cannot have the variable {name!r}: a name has no '=', and neither name nor value a NUL"
            )
