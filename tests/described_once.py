"""Installed plugins, described once for all pipelines of a process: half of reading a small pipeline would be that."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dicast._kernel.contract import hooks, registry

REPOSITORY = f"{Path(__file__).resolve().parents[1]}{os.sep}"


def describe_once(patch):
    """Let the kernel call the hooks of this repository's plugins once, and again if a test replaces a hook of a plugin."""
    load, described = registry.Registry._import, {}

    def load_once(self, plugin):
        module = sys.modules.get(plugin.target)
        if module is None or not (module.__file__ or "").startswith(REPOSITORY):
            return load(self, plugin)
        key = plugin, *(vars(module).get(hook) for hook in hooks.KIND_OF_HOOK)
        if key not in described:
            described[key] = load(self, plugin)
        return described[key]

    patch.setattr(registry.Registry, "_import", load_once)
