"""Sources that are copied into sandboxes; outside of them they are never imported."""

from __future__ import annotations

from importlib.resources import files

CALLED, CALLING, STUB = "candidate.py", "proxy.py", "stub.py"


def read_source(name: str) -> bytes:
    """Return the source of the module *name*."""
    return files(__name__).joinpath(name).read_bytes()
