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

_GIVEN = ("subject", "row")
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _check_function(_instance: object, _attribute: object, function: Callable[..., object]) -> None:
    if not callable(function):
        raise ConfigError(f"a task is a function that takes a row and returns its output, not {function!r:.80}")


@frozen
class FunctionTask:
    """Calls *function* about each row; what it returns is the output.

    Its parameters are the row's columns by their names (``input``, ``reference``, and the others'); ``row`` is all of them as a
    dict, ``subject`` the :class:`~dicast.Subject`, ``**rest`` the columns that no other parameter takes. A function of one parameter
    with another name gets the input. It returns text, or any other JSON value, whose JSON text is the output; a mapping with
    ``content`` and ``metrics``, or with ``responses`` by criterion; a Subject with an output, or a Failure. What it raises is a
    failure of its row (``crashed``), and so is an answer of None or blank text (``judge_output_invalid``).

    An ``async def`` runs in the event loop. A ``def`` runs in a thread of its own, so that functions which wait for a network may do so
    side by side; one that is over its time cannot be ended, goes on in its thread, and what it returns is not used.
    """

    name = "function"

    function: Callable[..., object] = field(validator=_check_function)

    async def produce(self, subject: Subject) -> Subject | Failure:
        """Call the function about *subject*."""
        named, began = _arguments(self.function, subject), time.monotonic()
        if isinstance(named, Failure):
            return named
        waits = inspect.iscoroutinefunction(inspect.unwrap(self.function))
        answer = self.function(*named[0], **named[1]) if waits else await _in_thread(self.function, *named)
        if inspect.isawaitable(answer):
            answer = await answer
        return _made(subject, answer, time.monotonic() - began)


def _made(subject: Subject, answer: object, seconds: float) -> Subject | Failure:
    return answer if isinstance(answer, Failure | Subject) else answered(subject, answer, seconds)


def _arguments(function: Callable[..., Any], subject: Subject) -> tuple[list[Any], dict[str, Any]] | Failure:
    """What *function* is called with about *subject*; a Failure where a column is missing."""
    row = columns(subject)
    known: Mapping[str, Any] = {**row, "subject": subject, "row": row}
    first, named, missing = list[Any](), dict[str, Any](), list[str]()
    parameters = inspect.signature(function).parameters.values()
    needed = [one for one in parameters if one.default is one.empty and one.kind not in _MANY]
    for one in parameters:
        if one.kind in _BY_NAME and one.name in known:
            named[one.name] = known[one.name]
        elif one in needed and len(needed) == 1 and one.kind is not one.KEYWORD_ONLY:
            first.append(subject.input)
        elif one in needed:
            missing.append(one.name)
    if missing:
        there = ", ".join(name for name in row)
        return Failure("missing_input", f"the row has no column {', '.join(missing)}; it has {there}")
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        named |= {name: value for name, value in row.items() if name not in named}
    return first, named


async def _in_thread(function: Callable[..., Any], first: list[Any], named: dict[str, Any]) -> Any:
    """What *function* returns in a thread that nobody waits for at the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():  # its time was over
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
