"""Hook specifications, by which a plugin offers its components.

Each hook is called once, right after the plugin is imported: when a pipeline first names one of its components. A hook takes no
arguments and returns a list of classes. It has no effect and no order: the order comes from the pipeline file alone.
"""

from __future__ import annotations

import pluggy

from .protocols import (
    Aggregate,
    ChatModel,
    Classes,
    Comparison,
    EarlyStop,
    Executor,
    Extractor,
    Judge,
    Ledger,
    Metric,
    Preset,
    Sandbox,
    Sink,
    Source,
    Task,
)

PROJECT = "dicast"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Decorator that marks a function of a plugin as an implementation of a hook."""


@hookspec
def dicast_sources() -> Classes[Source]:  # type: ignore[empty-body]
    """Offer kinds of input.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``subjects()``.
    Two classes with one name in one plugin are refused; the same name in another plugin is another component.

    Example::

        @hookimpl
        def dicast_sources():
            return [Jsonl]
    """


@hookspec
def dicast_tasks() -> Classes[Task]:  # type: ignore[empty-body]
    """Offer ways to make outputs.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with
    ``produce(subject)``, or with ``open(run)``, whose live object has it. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_tasks():
            return [Chat]
    """


@hookspec
def dicast_extractors() -> Classes[Extractor]:  # type: ignore[empty-body]
    """Offer readers of records.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with
    ``extract(record)`` and ``writes``. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_extractors():
            return [Scores]
    """


@hookspec
def dicast_aggregates() -> Classes[Aggregate]:  # type: ignore[empty-body]
    """Offer aggregates, which summarize the records of a run.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with
    ``open(run)``, whose live object has ``add(record)`` and ``finish()``. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_aggregates():
            return [ScoreStats]
    """


@hookspec
def dicast_comparisons() -> Classes[Comparison]:  # type: ignore[empty-body]
    """Offer comparisons of two runs.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with
    ``compare(baseline, variant)``. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_comparisons():
            return [Paired]
    """


@hookspec
def dicast_early_stops() -> Classes[EarlyStop]:  # type: ignore[empty-body]
    """Offer reasons to stop early.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with
    ``open(run)``, whose live object has ``observe(record)``. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_early_stops():
            return [Threshold]
    """


@hookspec
def dicast_metrics() -> Classes[Metric]:  # type: ignore[empty-body]
    """Offer metrics.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``score(subject)``
    and the class attribute ``tier``, or functions decorated with :func:`dicast.metric`. Two components of one name in one plugin
    are refused.

    Example::

        @hookimpl
        def dicast_metrics():
            return [brevity]
    """


@hookspec
def dicast_presets() -> Classes[Preset]:  # type: ignore[empty-body]
    """Offer presets: names for several metrics.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``metrics()``, which
    returns the metrics in the form of a pipeline file. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_presets():
            return [Tidy]
    """


@hookspec
def dicast_judges() -> Classes[Judge]:  # type: ignore[empty-body]
    """Offer judges.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``judge(subject,
    children)``, or functions decorated with :func:`dicast.judge`. A judge may be named under ``metrics:`` too, so a metric
    and a judge of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_judges():
            return [Turn]
    """


@hookspec
def dicast_models() -> Classes[ChatModel]:  # type: ignore[empty-body]
    """Offer chat models.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with
    ``complete(request)``, or with ``open(run)``, whose live object has it. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_models():
            return [Chat]
    """


@hookspec
def dicast_sinks() -> Classes[Sink]:  # type: ignore[empty-body]
    """Offer sinks, which receive a run's events.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``open(run)``, whose
    live object has ``write(events)`` and ``close()``, or with these two methods. Two components of one name in one plugin
    are refused.

    Example::

        @hookimpl
        def dicast_sinks():
            return [Rows]
    """


@hookspec
def dicast_ledgers() -> Classes[Ledger]:  # type: ignore[empty-body]
    """Offer ledgers.

    Called by the kernel once, when a pipeline or a command first names this plugin. Return frozen attrs classes whose
    ``open(run)`` gives a live :class:`~dicast.Ledger`. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_ledgers():
            return [Sqlite]
    """


@hookspec
def dicast_sandboxes() -> Classes[Sandbox]:  # type: ignore[empty-body]
    """Offer sandboxes.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``execute(program)``,
    or with ``open(run)``, whose live object has it. Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_sandboxes():
            return [Bubblewrap]
    """


@hookspec
def dicast_executors() -> Classes[Executor]:  # type: ignore[empty-body]
    """Offer executors, which schedule a run's work.

    Called by the kernel once, when a pipeline first names this plugin. Return frozen attrs classes with ``concurrency``.
    Two components of one name in one plugin are refused.

    Example::

        @hookimpl
        def dicast_executors():
            return [Async]
    """


KIND_OF_HOOK = {
    "dicast_sources": "source",
    "dicast_tasks": "task",
    "dicast_extractors": "extractor",
    "dicast_aggregates": "aggregate",
    "dicast_comparisons": "comparison",
    "dicast_early_stops": "early_stop",
    "dicast_metrics": "metric",
    "dicast_presets": "preset",
    "dicast_judges": "judge",
    "dicast_models": "model",
    "dicast_sinks": "sink",
    "dicast_ledgers": "ledger",
    "dicast_sandboxes": "sandbox",
    "dicast_executors": "executor",
}
