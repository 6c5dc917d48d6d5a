"""What is put into sandboxes as text: nothing here is imported outside of them."""

from __future__ import annotations

from importlib.resources import files

CALLED, CALLING, STUB = "candidate.py", "proxy.py", "stub.py"


def read_source(name: str) -> bytes:
    """The source of the module *name*."""
    return files(__name__).joinpath(name).read_bytes()
