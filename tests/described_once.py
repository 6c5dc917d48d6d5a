"""Installed plugins, listed and described once for all pipelines of a process: half of reading a small pipeline would be that."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

from dicast._kernel.contract import hooks, registry

REPOSITORY = f"{Path(__file__).resolve().parents[1]}{os.sep}"


def describe_once(patch):
    """Let the kernel list the installed plugins once, and describe the components of this repository's plugins once.

    The kernel reads anew where a test installs a plugin, or replaces a hook of a plugin.
    """
    paths, distributions = tuple(sys.path), metadata.distributions
    list_offers, find_kernel, load = registry.offers, registry._kernel, registry._components
    offers, kernel, described = cache(lambda group: tuple(list_offers(group))), cache(find_kernel), {}

    def is_unchanged():
        return tuple(sys.path) == paths and metadata.distributions is distributions

    def load_once(plugin):
        module = sys.modules.get(plugin.target)
        if module is None or not (module.__file__ or "").startswith(REPOSITORY):
            return load(plugin)
        key = plugin, *(vars(module).get(hook) for hook in hooks.KIND_OF_HOOK)
        if key not in described:
            described[key] = load(plugin)
        return described[key]

    patch.setattr(registry, "_components", load_once)
    patch.setattr(registry, "offers", lambda group: iter(offers(group) if is_unchanged() else list_offers(group)))
    patch.setattr(registry, "_kernel", lambda: kernel() if is_unchanged() else find_kernel())
