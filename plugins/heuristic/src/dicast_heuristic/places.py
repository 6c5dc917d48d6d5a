"""Where in a rubric's text a value stands."""

from __future__ import annotations

import re

import yaml


def place_of(text: str, path: str, *, key: bool = False) -> tuple[int, int] | None:
    """The line and the column, from 1, of the value at *path* (``weights.tool_failed``, ``confidence[0].value``) in YAML.

    With *key* it is the place of the key. Of a key that is missing it is that of the mapping that it is missing in; None where
    *text* is no such YAML.
    """
    place = node = _tree(text)
    for step in filter(None, re.split(r"[.\[\]]", path)):
        place, node = _step(node, step)
        if node is None:
            break
    found = node if node is not None and not key else place
    return None if found is None else (found.start_mark.line + 1, found.start_mark.column + 1)


def _tree(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:  # the kernel has read it: then it was no YAML from the start
        return None


def _step(node: yaml.Node | None, step: str) -> tuple[yaml.Node | None, yaml.Node | None]:
    """The key and the value at *step* in *node*; where it is missing, *node* itself and None."""
    if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        return node.value[int(step)], node.value[int(step)]
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((key, value) for key, value in pairs if key.value == step), (node, None))
