"""How two runs compare, for a reader: of a run with a baseline, and of ``dicast compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .terminal import Drawing
from .text_table import WIDTH, TextTable, cell_text

Figures = Mapping[str, Any]

_MARGIN = "  "


def comparison_lines(label: str, found: Figures) -> Iterator[str | Drawing]:
    """What the comparison *label* has *found*: a table, why some of its figures are missing, and what it says in ``words`` of each criterion.

    The figures are those of ``{criteria: {NAME: figures}}``, or of ``categories``; there may be none. A is the baseline, B the variant. :func:`~dicast.toolkit.terminal.print_lines` prints it.
    """
    criteria: Figures | None = found.get("criteria", found.get("categories"))
    if criteria is None:
        yield label
        yield f"{_MARGIN}{found.get('words', 'its figures are in the document (--json)')}"
        return
    title = next((text for fields, text in _TITLES if any(_has(one, fields) for one in criteria.values())), "")
    yield f"{label}: {title}" if title else label
    if not criteria:
        yield f"{_MARGIN}{found.get('reason', 'no criterion is in both runs')}"
    else:
        table = _table(criteria)
        yield Drawing(table, [_MARGIN + line if line else "" for line in table.lines(WIDTH - len(_MARGIN))])
    for (figure, why), names in _reasons(criteria).items():
        yield f"{_MARGIN}{figure} of {', '.join(names)}: {why}"
    said = {name: one.get("words") for name, one in criteria.items() if isinstance(one, Mapping)}
    if "sentences" not in found and [*said.values()] != [found.get("words")]:  # else they come at the end
        yield from (f"{_MARGIN}{name}: {words}" for name, words in said.items() if words is not None)
    for side, text in (("baseline", "only in A"), ("variant", "only in B")):
        if alone := found.get(f"only_in_{side}"):
            yield f"{_MARGIN}{text}: {', '.join(alone)}"


def _table(criteria: Figures) -> TextTable:
    """A row for each criterion; a figure alone is a difference of means."""
    rows = {name: {**one} if isinstance(one, Mapping) else {"mean_difference": one} for name, one in criteria.items()}
    for one in rows.values():
        if "n_baseline" in one:  # which are in n
            one.pop("n", None)
        if "u" in one:  # the interval is that of the effect, by rank
            one.pop("mean_difference", None)
    known = {field for _, fields, _ in _COLUMNS for field in fields} | _BESIDE
    more = dict.fromkeys(
        field
        for one in rows.values()
        for field, value in one.items()
        if field not in known and not isinstance(value, Mapping | list)
    )
    there = [column for column in _COLUMNS if any(set(column[1]) <= one.keys() for one in rows.values())]
    columns = [*there, *((field.replace("_", " "), (field,), _plain) for field in more)]
    heads = ["", *(head for head, _, _ in columns)]
    cells = [[name, *(_cell(one, fields, form) for _, fields, form in columns)] for name, one in rows.items()]
    return TextTable(heads, cells, right=heads[1:], whole=heads)


def _cell(one: Figures, fields: tuple[str, ...], form: Callable[..., str]) -> str | None:
    found = [one.get(field) for field in fields]
    return None if None in found else form(*found)


def _reasons(criteria: Figures) -> Mapping[tuple[str, str], list[str]]:
    """Which criteria have no figure, by figure and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for criterion, one in criteria.items():
        for reason in (one.get("reasons", {}) if isinstance(one, Mapping) else {}).items():
            found.setdefault(reason, []).append(criterion)
    return found


def _has(one: object, fields: tuple[str, ...]) -> bool:
    return one.keys() >= {*fields} if isinstance(one, Mapping) else fields == ("mean_difference",)


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
"""The heads of the columns, with the figures that each of them is made of."""

_BESIDE = {
    *("u", "t", "df", "bootstrap_method", "n_pass_pairs", "reasons", "words"),
    *("pass_rate_difference", "pass_rate_ci_low", "pass_rate_ci_high"),
    *("adjusted_wilcoxon_p", "adjusted_sign_p", "adjusted_mcnemar_p"),
}
"""What has no column: it is in the document."""

_SAME = "the same subjects in both runs"

_TITLES = (
    (("n_pairs",), _SAME),
    (("fail_to_pass",), _SAME),
    (("delta",), "how much more often B is ahead than behind"),
    (("n_baseline",), "all subjects of each run, as if they were different ones"),
    (("n", "mean_difference"), _SAME),
    (("mean_difference",), "the difference of the means of all subjects"),
)
"""What a comparison is about, by figures that only such a one has; the first that fits."""
