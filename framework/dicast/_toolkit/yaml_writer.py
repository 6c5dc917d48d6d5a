"""The writer of YAML: a text that any reader, of YAML 1.1 or 1.2, could take for a number or a word gets quotes."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from .yaml_reader import resolve


def write_yaml(data: Mapping[str, object]) -> str:
    """Return *data* as YAML, keys in their order; :func:`read_yaml` gives it back."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, which knows the words of YAML 1.1, with quotes for those of 1.2."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _is_text(text) else "'")


def _is_text(text: str) -> bool:
    try:
        return resolve(text) == text
    except ValueError:  # a number that the reader refuses
        return False


_Dumper.add_representer(str, _text)
