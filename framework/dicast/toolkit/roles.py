"""Names of roles in the formats of chat tools."""

from __future__ import annotations

from typing import Literal

Role = Literal["user", "assistant", "system", "tool"]

_NAMES: dict[Role, tuple[str, ...]] = {
    "user": ("user", "human"),
    "assistant": ("assistant", "ai", "model", "bot", "gemini", "agent", "gpt", "chatgpt"),
    "system": ("system", "developer", "instructions"),
    "tool": ("tool", "function", "ipython", "observation"),
}
ROLES: dict[str, Role] = {name: role for role, names in _NAMES.items() for name in names}
"""Each known name of a role, in lower case, with the role."""


def role_of(name: object) -> Role | None:
    """Return the role with the name *name*, in upper or lower case; None for an unknown name."""
    if not isinstance(name, str):
        return None
    return ROLES.get(name) or ROLES.get(name.lower())
