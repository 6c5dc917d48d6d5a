"""The loop's ref ``refs/dicast/loop/NAME``: kept experiments are commits on it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from . import state
from .git import Git, run_git

LOOPS = "refs/dicast/loop"
_LONGEST = 120


def ref_name(name: str, root: Path) -> str:
    """Return the ref for a session called *name*: other characters than letters, digits, ``_``, ``-`` and ``.`` are escaped."""
    word = quote(name, safe="").replace("~", "%7E")
    if len(word) > _LONGEST:
        word = f"{word[:_LONGEST].rpartition('%')[0] or word[:_LONGEST]}-{sha256(name.encode()).hexdigest()[:8]}"
    if run_git(("check-ref-format", f"{LOOPS}/{word}"), root).returncode:
        word = word.replace(".", "%2E")
    return f"{LOOPS}/{word}"


def begin(git: Git, name: str) -> str:
    """Create the ref of a session called *name* at HEAD, record it, and return it.

    An existing ref is reused only if it belongs to this session and HEAD has all of its commits. Otherwise the new ref gets a number.
    """
    base, mine, head = ref_name(name, git.root), state.load_ref(git.root), git.head()
    number, ref = 1, base
    while (tip := git.resolve(ref)) is not None and not (ref == mine and git.is_ancestor(tip, head)):
        number += 1
        ref = f"{base}-{number}"
    git.move(ref, head, tip)
    state.save_ref(git.root, ref)
    return ref


def loop_ref(git: Git, name: str) -> str:
    """Return the ref of the session; a session of an older release gets one."""
    return state.load_ref(git.root) or begin(git, name)
