"""Template: compiled once, and rendered for rows."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs
import jinja2
from jinja2 import nodes
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
