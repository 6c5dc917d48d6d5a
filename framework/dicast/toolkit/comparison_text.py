"""The text of a comparison of two runs, for a run with a baseline and for ``dicast compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .terminal import Drawing
from .text_table import WIDTH, TextTable, cell_text

Figures = Mapping[str, Any]

_MARGIN = "  "


def comparison_lines(label: str, document: Figures) -> Iterator[str | Drawing]:
    """Yield the lines of the comparison *label*: a table, the reasons for missing figures, and the ``words`` of each criterion.

    *document* has the figures as ``{criteria: {NAME: figures}}`` or ``{categories: {NAME: figures}}``, or neither. A is the baseline, B the variant.
    :func:`~dicast.toolkit.terminal.print_lines` prints the lines.
    """
    criteria: Figures | None = document.get("criteria", document.get("categories"))
    if criteria is None:
        yield label
        yield f"{_MARGIN}{document.get('words', 'its figures are in the document (--json)')}"
        return
    title = next((text for fields, text in _TITLES if any(_has(figures, fields) for figures in criteria.values())), "")
    yield f"{label}: {title}" if title else label
    if not criteria:
        yield f"{_MARGIN}{document.get('reason', 'no criterion is in both runs')}"
    else:
        table = _table(criteria)
        yield Drawing(table, [_MARGIN + line if line else "" for line in table.lines(WIDTH - len(_MARGIN))])
    for (figure, why), names in _reasons(criteria).items():
        yield f"{_MARGIN}{figure} of {', '.join(names)}: {why}"
    sentences = {name: figures.get("words") for name, figures in criteria.items() if isinstance(figures, Mapping)}
    # Otherwise the sentences follow the comparison.
    if "sentences" not in document and [*sentences.values()] != [document.get("words")]:
        yield from (f"{_MARGIN}{name}: {words}" for name, words in sentences.items() if words is not None)
    for side, text in (("baseline", "only in A"), ("variant", "only in B")):
        if alone := document.get(f"only_in_{side}"):
            yield f"{_MARGIN}{text}: {', '.join(alone)}"


def _table(criteria: Figures) -> TextTable:
    """Return the table with a row for each criterion; a single figure is a difference of means."""
    rows = {
        name: {**figures} if isinstance(figures, Mapping) else {"mean_difference": figures}
        for name, figures in criteria.items()
    }
    for figures in rows.values():
        if "n_baseline" in figures:  # n is the sum of both runs
            figures.pop("n", None)
        if "u" in figures:  # the interval is about the rank effect, not about the mean
            figures.pop("mean_difference", None)
    known_fields = {field for _, fields, _ in _COLUMNS for field in fields} | _OTHER_FIELDS
    extra_fields = dict.fromkeys(
        field
        for figures in rows.values()
        for field, value in figures.items()
        if field not in known_fields and not isinstance(value, Mapping | list)
    )
    present = [column for column in _COLUMNS if any(set(column[1]) <= figures.keys() for figures in rows.values())]
    columns = [*present, *((field.replace("_", " "), (field,), _plain) for field in extra_fields)]
    heads = ["", *(head for head, _, _ in columns)]
    cells = [[name, *(_cell(figures, fields, form) for _, fields, form in columns)] for name, figures in rows.items()]
    return TextTable(heads, cells, right=heads[1:], uncut=heads)


def _cell(figures: Figures, fields: tuple[str, ...], form: Callable[..., str]) -> str | None:
    values = [figures.get(field) for field in fields]
    return None if None in values else form(*values)


def _reasons(criteria: Figures) -> Mapping[tuple[str, str], list[str]]:
    """Return the criteria that lack a figure, by the figure and the reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for criterion, figures in criteria.items():
        for reason in (figures.get("reasons", {}) if isinstance(figures, Mapping) else {}).items():
            by_reason.setdefault(reason, []).append(criterion)
    return by_reason


def _has(figures: object, fields: tuple[str, ...]) -> bool:
    return figures.keys() >= {*fields} if isinstance(figures, Mapping) else fields == ("mean_difference",)


def _plain(value: object) -> str:
    return cell_text(value)


def _signed(value: float) -> str:
    return f"{value:+.4f}"


def _interval(low: float, high: float) -> str:
    return f"{low:+.4f} to {high:+.4f}"


def _p(value: float) -> str:
    return f"{value:.2g}" if value < 0.001 else f"{value:.4f}"


def _passes(gained: int, lost: int) -> str:
    return f"+{gained:,} -{lost:,}"


_COLUMNS: tuple[tuple[str, tuple[str, ...], Callable[..., str]], ...] = (
    ("pairs", ("n_pairs",), _plain),
    ("n", ("n",), _plain),
    ("n A", ("n_baseline",), _plain),
    ("n B", ("n_variant",), _plain),
    ("mean", ("mean_difference",), _signed),
    ("interval", ("ci_low", "ci_high"), _interval),
    ("bootstrap", ("bootstrap_ci_low", "bootstrap_ci_high"), _interval),
    ("effect", ("effect_size",), _signed),
    ("p", ("p_value",), _p),
    ("adjusted", ("adjusted_p_value",), _p),
    ("Wilcoxon", ("wilcoxon_p",), _p),
    ("sign", ("sign_p",), _p),
    ("McNemar", ("mcnemar_p",), _p),
    ("passes", ("passes_gained", "passes_lost"), _passes),
    ("delta", ("delta",), _signed),
    ("size", ("interpretation",), _plain),
)
"""The columns: the head, the names of the figures in a cell, and the function that formats them."""

_OTHER_FIELDS = {
    *("u", "t", "df", "bootstrap_method", "n_pass_pairs", "reasons", "words"),
    *("pass_rate_difference", "pass_rate_ci_low", "pass_rate_ci_high"),
    *("adjusted_wilcoxon_p", "adjusted_sign_p", "adjusted_mcnemar_p"),
}
"""Figures without a column; the document has them."""

_SAME_SUBJECTS = "the same subjects in both runs"

_TITLES = (
    (("n_pairs",), _SAME_SUBJECTS),
    (("fail_to_pass",), _SAME_SUBJECTS),
    (("delta",), "how much more often B is above A than below"),
    (("n_baseline",), "all subjects of each run, as if they were different ones"),
    (("n", "mean_difference"), _SAME_SUBJECTS),
    (("mean_difference",), "the difference of the means of all subjects"),
)
"""Titles of comparisons, by figures that only such a comparison has; the first match counts."""
