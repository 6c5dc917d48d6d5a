"""Probe for a fresh process: loads one plugin by its entry point, and prints its imports and CPU time as JSON."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

HEAVY = ("litellm", "httpx", "numpy", "pandas", "scipy", "torch")
"""Libraries that a plugin must import in the first call that needs them."""


def probe(plugin: str) -> dict[str, object]:
    """Load *plugin* in a new process, and return a report.

    It has the CPU ``seconds``, the ``heavy`` libraries and the modules of ``others`` (other plugins) that were imported, and the ``error``
    if the plugin did not load.
    """
    command = [sys.executable, "-P", "-m", __name__, plugin]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603  # ourselves
    if done.returncode:
        return {"seconds": 0.0, "heavy": [], "others": [], "error": done.stderr.strip()}
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return report


def _refuse(*args: object, **options: object) -> None:
    raise OSError("the network was used while the plugin was imported")


def load(plugin: str) -> dict[str, object]:
    """Load *plugin* in this process and return the document of :func:`probe`."""
    from .._kernel.contract.registry import Registry
    from .._kernel.values.errors import PluginError

    registry = Registry()
    targets = {
        offer.target.partition(":")[0] for name, offer in registry.scan().items() if name not in (plugin, "dicast")
    }
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, _refuse)
    before, began, error = set(sys.modules), time.process_time(), None
    try:
        registry.load(plugin)
    except PluginError as refused:
        error = str(refused)
    seconds = time.process_time() - began
    brought = set(sys.modules) - before
    return {
        "seconds": seconds,
        "heavy": sorted(set(HEAVY) & brought),
        "others": sorted(targets & brought),
        "error": error,
    }


if __name__ == "__main__":
    print(json.dumps(load(sys.argv[1])))
