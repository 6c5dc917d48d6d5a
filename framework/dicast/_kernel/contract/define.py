"""Components from plain functions: ``@metric`` and ``@judge`` turn one into a frozen attrs class."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar, overload

import attrs

from ..values import Cost, Failure, Judgment, Reply, Score, Subject
from ..values.errors import ConfigError

Tier = Literal["proxy", "truth"]
NeedsOutput = bool | Literal["always"]
T = TypeVar("T")
ScoreFunction = Callable[..., Score | Failure | Awaitable[Score | Failure]]
JudgeFunction = Callable[..., Judgment | Failure | Awaitable[Judgment | Failure]]


def metric(
    *, tier: Tier, cost: str | None = None, name: str | None = None, needs_output: NeedsOutput = True
) -> Callable[[ScoreFunction], type[Any]]:
    """Make a metric of a function ``(subject, *, options…) -> Score``.

    Its keyword-only arguments become the options, with their annotations and defaults; its docstring becomes the metric's.
    A ``def`` is for pure, quick work and runs under a timer; anything that waits is ``async def``.

    :param tier: ``"proxy"`` or ``"truth"``.
    :param cost: what one call may cost at most, as ``"0.01 usd"``; nothing by default.
    :param name: the component's name; the function's by default.
    :param needs_output: False for a metric that judges something else: it is also asked about subjects without an output;
        ``"always"`` for one that reads nothing but the output: it is not asked about trace events without one.
    :raises ConfigError: when the function has other parameters than one subject and keyword-only options.
    """
    if tier not in ("proxy", "truth"):
        raise ConfigError(f"a metric's tier is 'proxy' or 'truth', not {tier!r}")
    price = Cost.zero() if cost is None else Cost.parse(cost)

    def decorate(function: ScoreFunction) -> type[Any]:
        extra = {"tier": tier, "needs_output": needs_output, **_estimate(price)}
        return _component(function, "score", ("subject",), name, extra)

    return decorate


def judge(
    *, accepts: Sequence[str] = (), cost: str | None = None, name: str | None = None, needs_output: NeedsOutput = True
) -> Callable[[JudgeFunction], type[Any]]:
    """Make a judge of a function ``(subject, children, *, options…) -> Judgment``; *children* may be left out.

    :param accepts: the subject kinds it judges; any by default.
    :param cost: what one call may cost at most, as ``"0.01 usd"``; nothing by default.
    :param name: the component's name; the function's by default.
    :param needs_output: as for :func:`metric`.
    :raises ConfigError: when the function has other parameters than subject, children and keyword-only options.
    """
    price = Cost.zero() if cost is None else Cost.parse(cost)

    def decorate(function: JudgeFunction) -> type[Any]:
        extra = {"accepts": tuple(accepts), "needs_output": needs_output, **_estimate(price)}
        return _component(function, "judge", ("subject", "children"), name, extra)

    return decorate


def _estimate(price: Cost) -> dict[str, object]:
    """The method ``estimate``; none where nothing is charged, so that the runner need not ask."""

    def estimate(self: object, subject: Subject) -> Cost:
        """What one call may cost at most."""
        return price

    return {} if price.is_zero else {"estimate": estimate}


def _component(
    function: Callable[..., object],
    method: str,
    takes: tuple[str, ...],
    name: str | None,
    extra: dict[str, object],
) -> type[Any]:
    given, options = _parameters(function, takes)
    fields = {option.name: _field(option) for option in options}
    body = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "name": name or function.__name__,
        method: _method(function, given, tuple(fields), method),
        **extra,
    }
    made = attrs.make_class(function.__name__, fields, class_body=body, frozen=True, slots=True, kw_only=True)
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def _field(option: inspect.Parameter) -> Any:
    annotation = object if option.annotation is option.empty else option.annotation
    default = attrs.NOTHING if option.default is option.empty else option.default
    if isinstance(default, list | dict | set):
        return attrs.field(type=annotation, factory=lambda: type(default)(default))
    return attrs.field(type=annotation, default=default)


def _parameters(function: Callable[..., object], takes: tuple[str, ...]) -> tuple[int, list[inspect.Parameter]]:
    given, options = 0, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            options.append(parameter)
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) and given < len(takes):
            given += 1
        else:
            raise ConfigError(
                f"{function.__module__}.{function.__qualname__}: unexpected parameter {parameter.name!r}; "
                f"it takes {' and '.join(takes)}, and its options after a '*'"
            )
    if not given:
        raise ConfigError(f"{function.__module__}.{function.__qualname__} takes no {takes[0]}")
    return given, options


def _method(function: Callable[..., object], given: int, options: tuple[str, ...], name: str) -> Callable[..., object]:
    """Bind the options as keyword arguments. *given* is how many of subject and children the function takes."""

    def call(self: object, *subject_and_children: object) -> object:
        return function(*subject_and_children[:given], **{option: getattr(self, option) for option in options})

    async def wait(self: object, *subject_and_children: object) -> object:
        return await call(self, *subject_and_children)  # type: ignore[misc]

    bound = wait if inspect.iscoroutinefunction(function) else call
    bound.__name__, bound.__doc__ = name, function.__doc__
    return bound


@overload
async def maybe_await(value: Score | Failure | Awaitable[Score | Failure]) -> Score | Failure: ...  # type: ignore[overload-overlap]  # what it is for
@overload
async def maybe_await(value: Judgment | Failure | Awaitable[Judgment | Failure]) -> Judgment | Failure: ...  # type: ignore[overload-overlap]  # as above
@overload
async def maybe_await(value: Reply | Failure | Awaitable[Reply | Failure]) -> Reply | Failure: ...
@overload
async def maybe_await(value: Awaitable[T]) -> T: ...
@overload
async def maybe_await(value: T) -> T: ...
async def maybe_await(value: Any) -> Any:
    """Return *value*, awaited if it has to be: for calling a nested component that may be ``def`` or ``async def``."""
    return await value if inspect.isawaitable(value) else value
