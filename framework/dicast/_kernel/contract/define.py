"""Components from plain functions: ``@metric`` and ``@judge`` turn a function into a frozen attrs class."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

import attrs

from ..values import Cost, Failure, Judgment, Score, Subject, Verdict
from ..values.errors import ConfigError

if TYPE_CHECKING:
    from ..values.raw_score import RawScore

Tier = Literal["proxy", "truth"]
NeedsOutput = bool | Literal["always"]
T = TypeVar("T")
P = ParamSpec("P")
ScoreT = TypeVar("ScoreT", bound=Awaitable["Score | RawScore | Failure"])
JudgmentT = TypeVar("JudgmentT", bound=Awaitable[Judgment | Failure])


class FunctionMetric(Generic[P, ScoreT]):
    """Base class of the metrics that :func:`metric` makes. *P* are the options, and *ScoreT* is the result of the function."""

    __slots__ = ()
    name: str
    tier: str

    if TYPE_CHECKING:

        def __init__(self, *args: P.args, **options: P.kwargs) -> None: ...

        def score(self, subject: Subject) -> ScoreT:
            """Return the result of the function for *subject*."""
            ...


class FunctionJudge(Generic[P, JudgmentT]):
    """Base class of the judges that :func:`judge` makes. *P* are the options, and *JudgmentT* is the result of the function."""

    __slots__ = ()
    name: str
    accepts: Sequence[str]

    if TYPE_CHECKING:

        def __init__(self, *args: P.args, **options: P.kwargs) -> None: ...

        def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> JudgmentT:
            """Return the result of the function for *subject* and *children*."""
            ...


class JudgeDecorator(Protocol):
    """Decorator that makes a judge of a function; *children* may be left out."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Subject, Sequence[Verdict], P], JudgmentT], /
    ) -> type[FunctionJudge[P, JudgmentT]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Subject, P], JudgmentT], /
    ) -> type[FunctionJudge[P, JudgmentT]]: ...


def metric(
    *, tier: Tier, cost: str | None = None, name: str | None = None, needs_output: NeedsOutput = True
) -> Callable[[Callable[Concatenate[Subject, P], ScoreT]], type[FunctionMetric[P, ScoreT]]]:
    """Return a decorator that makes a metric of a function ``(subject, *, options…) -> Score``.

    Its keyword-only arguments become the options, with their annotations and defaults; its docstring becomes the metric's docstring.
    A ``def`` is for pure, quick work and runs under a timer; a function that waits is ``async def``.

    :param tier: ``"proxy"`` or ``"truth"``.
    :param cost: the most that one call may cost, as ``"0.01 usd"``; nothing by default.
    :param name: the component's name; the function's by default.
    :param needs_output: False for a metric that judges something other than the output: it is called for subjects without an output too.
        ``"always"`` for a metric that reads the output alone: it is not called for trace events without an output.
    :raises ConfigError: if the function has parameters other than one subject and keyword-only options.
    """
    if tier not in ("proxy", "truth"):
        raise ConfigError(f"a metric's tier is 'proxy' or 'truth', not {tier!r}")
    price = Cost.zero() if cost is None else Cost.parse(cost)

    def decorate(function: Callable[..., object]) -> type[Any]:
        extra = {"tier": tier, "needs_output": needs_output, **_estimate(price)}
        return _component(function, FunctionMetric, ("subject",), name, extra)

    return decorate


def judge(
    *, accepts: Sequence[str] = (), cost: str | None = None, name: str | None = None, needs_output: NeedsOutput = True
) -> JudgeDecorator:
    """Return a decorator that makes a judge of a function ``(subject, children, *, options…) -> Judgment``; *children* may be left out.

    :param accepts: the subject kinds that it judges; any by default.
    :param cost: the most that one call may cost, as ``"0.01 usd"``; nothing by default.
    :param name: the component's name; the function's by default.
    :param needs_output: as for :func:`metric`.
    :raises ConfigError: if the function has parameters other than subject, children and keyword-only options.
    """
    price = Cost.zero() if cost is None else Cost.parse(cost)

    def decorate(function: Callable[..., object]) -> type[Any]:
        extra = {"accepts": tuple(accepts), "needs_output": needs_output, **_estimate(price)}
        return _component(function, FunctionJudge, ("subject", "children"), name, extra)

    return decorate


def _estimate(price: Cost) -> dict[str, object]:
    """Return the method ``estimate``; empty for a price of zero, so that the kernel need not call it."""

    def estimate(self: object, subject: Subject) -> Cost:
        """Return the most that one call may cost."""
        return price

    return {} if price.is_zero else {"estimate": estimate}


def _component(
    function: Callable[..., object],
    base: type,
    takes: tuple[str, ...],
    name: str | None,
    extra: dict[str, object],
) -> type[Any]:
    count, options = _parameters(function, takes)
    method = "judge" if base is FunctionJudge else "score"
    fields = {option.name: _field(option) for option in options}
    body = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "name": name or function.__name__,
        method: _method(function, count, tuple(fields), method),
        **extra,
    }
    component = attrs.make_class(
        function.__name__, fields, (base,), class_body=body, frozen=True, slots=True, kw_only=True
    )
    component.__module__, component.__qualname__ = function.__module__, function.__qualname__
    return component


def _field(option: inspect.Parameter) -> Any:
    annotation = object if option.annotation is option.empty else option.annotation
    default = attrs.NOTHING if option.default is option.empty else option.default
    if isinstance(default, list | dict | set):
        return attrs.field(type=annotation, factory=lambda: type(default)(default))
    return attrs.field(type=annotation, default=default)


def _parameters(function: Callable[..., object], takes: tuple[str, ...]) -> tuple[int, list[inspect.Parameter]]:
    count, options = 0, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            options.append(parameter)
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) and count < len(takes):
            count += 1
        else:
            raise ConfigError(
                f"{function.__module__}.{function.__qualname__}: unexpected parameter {parameter.name!r}; "
                f"it takes {' and '.join(takes)}, and its options after a '*'"
            )
    if not count:
        raise ConfigError(f"{function.__module__}.{function.__qualname__} takes no {takes[0]}")
    return count, options


def _method(function: Callable[..., object], count: int, options: tuple[str, ...], name: str) -> Callable[..., object]:
    """Return a method that passes the options as keyword arguments; *count* is the number of positional arguments of *function*."""

    def call(self: object, subject: object, children: Sequence[object] = ()) -> object:
        return function(*(subject, children)[:count], **{option: getattr(self, option) for option in options})

    async def wait(self: object, subject: object, children: Sequence[object] = ()) -> object:
        return await call(self, subject, children)  # type: ignore[misc]

    bound = wait if inspect.iscoroutinefunction(function) else call
    bound.__name__, bound.__doc__ = name, function.__doc__
    bound.__wrapped__ = function  # type: ignore[attr-defined]  # for messages with the author's line
    return bound


@overload
async def maybe_await(value: Awaitable[T]) -> T: ...
@overload
async def maybe_await(value: T) -> T: ...
async def maybe_await(value: Any) -> Any:
    """Return *value*, awaited if it is awaitable: the result of a function that may be ``def`` or ``async def``.

    The answer of a nested component needs no such call: ``await self.judge.judge(subject)`` is right for a ``def`` too.
    """
    return await value if inspect.isawaitable(value) else value
