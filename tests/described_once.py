"""Installed plugins, listed and described once for all pipelines of a process: half of reading a small pipeline would be that."""

from __future__ import annotations

import os
import re
import sys
from functools import cache, partial
from importlib import metadata
from pathlib import Path

import pytest

from dicast._kernel.contract import hooks, registry

canonical = cache(lambda name: re.sub(r"[-_.]+", "-", name).lower())
"""Return the *name* of a distribution as it is compared with others."""
REPOSITORY = f"{Path(__file__).resolve().parents[1]}{os.sep}"


def describe_once(patch):
    """Let the kernel list the installed plugins once, and describe the components of this repository's plugins once.

    The kernel reads anew what a test installs in folders that it puts in front of the others, all of it where the path has changed in
    another way, and a plugin whose hook a test replaces.
    """
    paths, distributions = tuple(sys.path), metadata.distributions
    list_offers, find_kernel, load = registry.offers, registry._kernel, registry._components
    kernel, described = cache(find_kernel), {}

    def added():
        """Return the folders in front of those that were there; None if the path has changed in another way."""
        more = sys.path[: -len(paths)]
        return more if tuple(sys.path) == (*more, *paths) and metadata.distributions is distributions else None

    def offers_in(folders, group):
        with pytest.MonkeyPatch.context() as within:
            within.setattr(metadata, "distributions", partial(distributions, path=folders))
            return tuple(list_offers(group))

    @cache
    def known(group):
        return offers_in(paths, group)

    def offers_once(group):
        if (more := added()) is None:
            return list_offers(group)
        new = offers_in(more, group) if more else ()
        names = {canonical(offer.distribution) for offer in new}
        return iter([*new, *(offer for offer in known(group) if canonical(offer.distribution) not in names)])

    def kernel_once():
        more = added()
        is_known = more is not None and not any(distributions(name="dicast-kernel", path=more))
        return kernel() if is_known else find_kernel()

    def load_once(plugin):
        module = sys.modules.get(plugin.target)
        if module is None or not (module.__file__ or "").startswith(REPOSITORY):
            return load(plugin)
        key = plugin, *(vars(module).get(hook) for hook in hooks.KIND_OF_HOOK)
        if key not in described:
            described[key] = load(plugin)
        return described[key]

    patch.setattr(registry, "_components", load_once)
    patch.setattr(registry, "offers", offers_once)
    patch.setattr(registry, "_kernel", kernel_once)
