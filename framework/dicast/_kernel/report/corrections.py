"""Next step after a model's endpoint ended a run: the condition for resuming it, and the values that may be wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..values.endpoint_errors import UNSUPPORTED

_STATUS = re.compile(r": HTTP (\d{3}): ")

_NO_ACCESS = ("401", "403")


def refusal_words(stopped: Mapping[str, Any]) -> tuple[str, str]:
    """Return the condition for resuming a run that a model's endpoint *stopped*, and the values that may be wrong, with their place; empty without them."""
    if "message" not in stopped:
        return "", ""
    match, place = _STATUS.search(stopped["message"]), correction_place(stopped)
    if stopped["reason"] == "refused_by_provider" and match is not None:
        if match[1] in _NO_ACCESS:
            return f"{key_step(stopped)}, then with the file unchanged", ""
        if match[1] == "404":
            return f"once the endpoint has the model{_unchanged(stopped)}", f"the address or the model {place}"
        return f"once the endpoint accepts the calls{_unchanged(stopped)}", ""
    if stopped["reason"] == UNSUPPORTED:
        return f"once the model supports the option{_unchanged(stopped)}", f"the option or the model {place}"
    return f"once the endpoint answers{_unchanged(stopped)}", f"the address or the model {place}"


def key_step(stopped: Mapping[str, Any]) -> str:
    """Return the next step after an endpoint that *stopped* a run refused the key: the variable that was empty, if one was."""
    names = stopped.get("empty_variables") or ()
    if not names:
        return "correct the key in the environment"
    return f"set {_listed(names)} in the environment, which {'was' if len(names) == 1 else 'were'} empty"


def correction_place(stopped: Mapping[str, Any]) -> str:
    """Return the place of the address and the model of the endpoint that *stopped* a run: the file, and the environment's variables."""
    names = stopped.get("variables") or ()
    return f"in the file or in the environment ({_listed(names)})" if names else "in the file"


def _unchanged(stopped: Mapping[str, Any]) -> str:
    names = stopped.get("variables") or ()
    return f", with {_listed(['the file', *names])} unchanged" if names else " and the file is unchanged"


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
