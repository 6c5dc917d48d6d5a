"""The default sets of metrics: cheap proxies, and truth metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import attrs

from dicast import ChatModel, Within
from dicast.toolkit.json_values import check_field


@attrs.frozen
class DefaultProxy:
    """The usual proxies: ``proxy/format``, ``proxy/length`` with a minimum length, and ``proxy/syntax``.

    :param min: the shortest length with full credit, in characters.
    :param field: the place in the output to check: a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``). All three metrics use it. By default they check the whole output.
    """

    name = "default_proxy"

    min: int = attrs.field(default=10, validator=Within(0, inf, "0 or more"))
    field: str | None = attrs.field(default=None, validator=check_field)

    def metrics(self) -> Sequence[Mapping[str, object]]:
        """Return the three metrics, of weight 1 each."""
        at = {} if self.field is None else {"field": self.field}
        return [{"proxy/format": at}, {"proxy/length": {"min": self.min, **at}}, {"proxy/syntax": at}]


@attrs.frozen
class DefaultTruth:
    """The usual truth metrics: ``llm/judge``, and ``diff/match`` with the reference.

    A subject without a reference fails ``diff/match``. With ``on_failure: exclude`` its score is the judge's alone.

    :param model: the chat model of the judge.
    :param criteria: criteria in addition to the rubric, a sentence each.
    """

    name = "default_truth"

    model: ChatModel
    criteria: Sequence[str] = ()

    def metrics(self) -> Sequence[Mapping[str, object]]:
        """Return the two metrics, of weight 1 each."""
        return [{"llm/judge": {"model": self.model, "criteria": list(self.criteria)}}, {"diff/match": {}}]
