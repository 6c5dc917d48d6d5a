"""A task that calls a Python function about each row."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .._kernel.asking.record import columns
from .._kernel.classes import field, frozen
from .._kernel.values import Failure, Subject
from .._kernel.values.errors import ConfigError
from .answers import answered

_SPECIAL = ("subject", "row")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _check_function(_instance: object, _attribute: object, function: Callable[..., object]) -> None:
    if not callable(function):
        raise ConfigError(f"a task is a function that takes a row and returns its output, not {function!r:.80}")


@frozen
class FunctionTask:
    """A task that calls *function* for each row; the return value is the output.

    Its parameters are the row's columns by their names (``input``, ``reference``, and others); ``row`` is all of them as a
    dict, ``subject`` the :class:`~dicast.Subject`, ``**rest`` the columns that no other parameter takes. A function of one parameter
    with another name gets the input. It returns text, or any other JSON value, whose JSON text is the output; a mapping with
    ``content`` and ``metrics``, or with ``responses`` by criterion; a Subject with an output, or a Failure. An error that it raises is a
    failure of its row (``crashed``), and so is an answer of None or blank text (``judge_output_invalid``).

    An ``async def`` runs in the event loop. A ``def`` runs in its own thread, so that functions which wait for a network run
    at the same time. After a timeout such a function cannot be ended: it goes on in its thread, and its return value is not used.
    """

    name = "function"

    function: Callable[..., object] = field(validator=_check_function)

    async def produce(self, subject: Subject) -> Subject | Failure:
        """Return *subject* with the function's answer as its output, or a Failure."""
        arguments, start = _arguments(self.function, subject), time.monotonic()
        if isinstance(arguments, Failure):
            return arguments
        is_async = inspect.iscoroutinefunction(inspect.unwrap(self.function))
        positional, named = arguments
        answer = self.function(*positional, **named) if is_async else await _in_thread(self.function, positional, named)
        if inspect.isawaitable(answer):
            answer = await answer
        return _output(subject, answer, time.monotonic() - start)


def _output(subject: Subject, answer: object, seconds: float) -> Subject | Failure:
    return answer if isinstance(answer, Failure | Subject) else answered(subject, answer, seconds)


def _arguments(function: Callable[..., Any], subject: Subject) -> tuple[list[Any], dict[str, Any]] | Failure:
    """Return the positional and keyword arguments of *function* for *subject*, or a Failure if a column is missing."""
    row = columns(subject)
    values: Mapping[str, Any] = {**row, "subject": subject, "row": row}
    first, named, missing = list[Any](), dict[str, Any](), list[str]()
    parameters = inspect.signature(function).parameters.values()
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]
    for parameter in parameters:
        if parameter.kind in _BY_NAME and parameter.name in values:
            named[parameter.name] = values[parameter.name]
        elif parameter in needed and len(needed) == 1 and parameter.kind is not parameter.KEYWORD_ONLY:
            first.append(subject.input)
        elif parameter in needed:
            missing.append(parameter.name)
    if missing:
        available = ", ".join(name for name in row)
        return Failure("missing_input", f"the row has no column {', '.join(missing)}; it has {available}")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        named |= {name: value for name, value in row.items() if name not in named}
    return first, named


async def _in_thread(function: Callable[..., Any], first: list[Any], named: dict[str, Any]) -> Any:
    """Return the result of *function*, called in a thread that does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():  # the call has timed out
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: Any = None
        raised: BaseException | None = None
        try:
            value = context.run(function, *first, **named)
        except StopIteration as error:  # no future takes one
            raised = RuntimeError(f"the function raised StopIteration: {error}")
        except BaseException as error:  # the border: it is raised where the answer is awaited
            raised = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, raised)

    threading.Thread(target=work, name="dicast-task", daemon=True).start()
    return await future
