"""Comparisons that ``dicast compare`` makes, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dicast import Comparison, ConfigError, Problem, component, nearest
from dicast.toolkit.json_values import read_json

from ..pairs.flips import Flips
from ..pairs.outliers import Outliers
from ..pairs.paired import Paired
from ..pairs.practical import Practical
from ..pairs.referee_alignment import RefereeAlignment
from ..unpaired.assumptions import Assumptions
from ..unpaired.bayes import Bayes
from ..unpaired.category_effects import CategoryEffects
from ..unpaired.cliffs_delta import CliffsDelta
from ..unpaired.criteria_effects import CriteriaEffects
from ..unpaired.distribution_shift import DistributionShift
from ..unpaired.score_delta import ScoreDelta
from ..unpaired.significance import Significance

_DEFAULTS = (Paired, Significance, CliffsDelta, ScoreDelta)
_EXTRAS = (Bayes, Practical, Assumptions, DistributionShift, Outliers, Flips, CategoryEffects, CriteriaEffects)

COMPARISONS: Mapping[str, Callable[[], Comparison]] = {
    f"stats/{comparison.name}": comparison for comparison in (*_DEFAULTS, *_EXTRAS)
}
"""Comparisons that need no options, by their names in pipelines."""

DEFAULT_NAMES = [f"stats/{comparison.name}" for comparison in _DEFAULTS]
"""Names of the comparisons that are made by default, in the order of display."""

PAIRED = f"stats/{Paired.name}"
"""Comparison that every document needs."""

_NEEDS_OPTIONS = f"stats/{RefereeAlignment.name}"


def parse_choice(choice: str) -> tuple[str, Comparison | None]:
    """Return the full name of the comparison in ``NAME`` or ``{NAME: {options}}``, and the comparison if it has or needs options.

    :raises ConfigError: if there is no such comparison, or its options are wrong.
    """
    options: object = {}
    name = choice
    if choice.lstrip().startswith("{"):
        try:
            ((name, options),) = read_json(choice).items()
            if not isinstance(options, Mapping):
                raise TypeError(f"the options of {name} are not an object")
        except (ValueError, TypeError) as error:
            message = f"it is not a JSON object of one comparison and its options, {{NAME: {{OPTION: VALUE}}}}: {error}"
            raise ConfigError(Problem(message, path="--compare", value=choice)) from error
    full_name = find_full_name(name, [*COMPARISONS, _NEEDS_OPTIONS])
    if not options and full_name in COMPARISONS:
        return full_name, None
    if not options:
        message = f'{full_name} needs options: --compare \'{{"{full_name}": {{"referee_fields": ["COLUMN"]}}}}\''
        raise ConfigError(Problem(message, path="--compare", value=choice))
    return full_name, component("comparison", {full_name: options})  # type: ignore[dict-item]  # it reports wrong options


def find_full_name(name: str, names: Sequence[str] = ()) -> str:
    """Return the full name of the comparison *name*, which may lack the name of the plugin.

    :raises ConfigError: if there is none.
    """
    full_names = {
        short: full_name for full_name in names or COMPARISONS for short in (full_name, full_name.partition("/")[2])
    }
    if name in full_names:
        return full_names[name]
    message = f"no comparison {name!r}; choose one of {', '.join(names or COMPARISONS)}"
    raise ConfigError(Problem(message, path="--compare", value=name, hint=nearest(name, full_names)))
