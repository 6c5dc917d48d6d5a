"""What the tests of every folder share: servers on loopback."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# How long an example takes says what else the machine does: speed is measured in benchmarks.
settings.register_profile("dicast", deadline=None)
settings.load_profile("dicast")

TESTS = Path(__file__).parent / "tests"


def load(name: str) -> Any:
    """Import ``tests/NAME.py``, which is on nobody's path."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def probed_once() -> Iterator[None]:
    """Import a plugin in a fresh process once for all its components, and again only where that was slow."""
    from dicast.testing import conformance  # the kernel, which not every process of pytest needs

    probe, found = conformance.probe, {}

    def probed(plugin: str) -> dict[str, Any]:
        key = plugin, os.environ.get("PYTHONPATH")
        if key not in found or found[key]["seconds"] > conformance.IMPORT_SECONDS:
            found[key] = probe(plugin)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conformance, "probe", probed)
        yield


@pytest.fixture
def chat_server() -> Iterator[Any]:
    """An OpenAI-compatible endpoint that does what it is told; see ``tests/chat_server.py``."""
    server = load("chat_server").ChatServer().start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def model_server() -> Iterator[Any]:
    """A real model behind an OpenAI-compatible endpoint, one for all tests; see ``tests/model_server.py``."""
    server = load("model_server").ModelServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def model_file() -> Path:
    """The path of a real model's GGUF file."""
    path: Path = load("model_server").model_file()
    return path
