"""Template: compiled once, and rendered for rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs
import jinja2
from jinja2 import meta, nodes
from jinja2.exceptions import SecurityError

from dicast import ConfigError, nearest

from .bounds import MOST_CHARS, Steps, Unrenderable
from .filters import STEPS
from .sandbox import sandbox

_UNDEFINED = re.compile(r"'(.*)' is undefined")


@attrs.frozen
class Template:
    """A compiled template; *place* names it in messages."""

    place: str
    _compiled: jinja2.Template
    _length: int

    @classmethod
    def of(cls, text: str, place: str) -> Template:
        """Compile *text*.

        :raises ConfigError: naming the line of the problem.
        """
        environment = sandbox()
        try:
            _check(environment.parse(text))
            return cls(place, environment.from_string(text), len(text))
        except jinja2.TemplateSyntaxError as error:
            raise ConfigError(f"{place}, line {error.lineno}: {error.message}") from error
        except RecursionError as error:
            raise ConfigError(f"{place}: the template is nested too deep") from error

    def render(self, names: Mapping[str, object]) -> str:
        """Return the text for a row that has *names*.

        :raises Unrenderable: with the reason.
        """
        parts, length = [], 0
        try:
            for part in self._compiled.generate({**names, STEPS: Steps(self._length)}):
                parts.append(part)
                length += len(part)
                if length > MOST_CHARS:
                    raise Unrenderable(f"it becomes longer than {MOST_CHARS:,} characters")
        except Unrenderable as error:
            raise Unrenderable(f"{self.place}: {error}", error.kind) from error
        except jinja2.UndefinedError as error:
            raise Unrenderable(f"{self.place}: {_lacking(str(error), names)}", "missing_input") from error
        except SecurityError as error:
            raise Unrenderable(f"{self.place}: {error}") from error
        except Exception as error:  # boundary: expressions of a template may raise anything
            raise Unrenderable(f"{self.place}: {type(error).__name__}: {error}") from error
        return "".join(parts)


def _lacking(message: str, names: Mapping[str, object]) -> str:
    """Return *message*; for a missing name, add the nearest name and all names of the row."""
    match = _UNDEFINED.fullmatch(message)
    if match is None:
        return message
    near = nearest(match[1], names)
    hint = f", did you mean {near!r}?" if near else ";"
    return f"the row has no {match[1]!r}{hint} it has {', '.join(sorted(names))}"


def _check(tree: nodes.Template) -> None:
    """Refuse constructs that are wrong for any row.

    :raises jinja2.TemplateSyntaxError: naming the line.
    """
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        raise jinja2.TemplateSyntaxError("a template cannot include, import or extend another template", node.lineno)
    for attribute in tree.find_all(nodes.Getattr):
        if attribute.attr.startswith("_"):
            message = f"the attribute {attribute.attr!r} is not accessible; write a key with this name as x['{attribute.attr}']"
            raise jinja2.TemplateSyntaxError(message, attribute.lineno)


_LAZY = (nodes.Macro, nodes.CallBlock, nodes.Block, nodes.Assign, nodes.AssignBlock, nodes.Test, nodes.Literal)
"""Constructs that need not fail if a name inside of them is missing."""

_DEFAULTS = ("default", "d")
_FIRST: Mapping[type[nodes.Node], str] = {
    nodes.Call: "node",
    nodes.If: "test",
    nodes.CondExpr: "test",
    nodes.For: "iter",
    nodes.And: "left",
    nodes.Or: "left",
}
"""Constructs with one part that is always read, and the name of the part."""


def needed_names(text: str) -> list[str]:
    """Return the names without which the template *text* fails for any row, in their order.

    Names that it reads only under a condition, or that have a default or a test for being defined, are left out.
    """
    environment = sandbox()
    tree = environment.parse(text)
    free = meta.find_undeclared_variables(tree) - {*environment.globals, "context"} - _optional(tree)
    return [name for name in dict.fromkeys(_always_read(tree)) if name in free]


def _always_read(node: nodes.Node) -> Iterator[str]:
    """Yield the names that *node* reads whenever it is rendered."""
    part = _FIRST.get(type(node))
    if isinstance(node, nodes.Name):
        yield node.name
    elif part is not None:
        yield from _always_read(getattr(node, part))
    elif not isinstance(node, _LAZY) and not (isinstance(node, nodes.Filter) and node.name in _DEFAULTS):
        for child in node.iter_child_nodes():
            yield from _always_read(child)


def _optional(tree: nodes.Template) -> set[str]:
    """Return the names that have a default, or are tested, anywhere in *tree*."""
    filters = [node for node in tree.find_all(nodes.Filter) if node.name in _DEFAULTS]
    return {name.name for node in (*tree.find_all(nodes.Test), *filters) for name in node.find_all(nodes.Name)}
