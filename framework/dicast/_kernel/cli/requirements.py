"""Options that have no effect without another option."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click
from click.core import ParameterSource

_P = ParamSpec("_P")
_T = TypeVar("_T")


def requires(**options: str | tuple[str, ...]) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Return a decorator that lets a command refuse options without the options that they need; it is the innermost decorator.

    *options* has, by the parameter of each option, the parameter of the option that it needs, or several, one of which suffices. An option
    is present if the user gives it, also with the value of its default.

    The command raises :class:`click.UsageError` with both options.
    """

    def decorate(call: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(call)
        def checked(*arguments: _P.args, **values: _P.kwargs) -> _T:
            for name, needs in options.items():
                _refuse_alone(click.get_current_context(), name, (needs,) if isinstance(needs, str) else needs)
            return call(*arguments, **values)

        return checked

    return decorate


def _refuse_alone(context: click.Context, name: str, needs: tuple[str, ...]) -> None:
    if not _is_present(context, name) or any(_is_present(context, need) for need in needs):
        return
    flags = {param.name: param.opts[-1] for param in context.command.params}
    option, names = flags[name], [flags[need] for need in needs]
    advice = "add it" if len(names) == 1 else "add one of them"
    raise click.UsageError(f"{option} needs {' or '.join(names)}: {advice}, or remove {option}")


def _is_present(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
