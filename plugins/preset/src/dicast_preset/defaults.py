"""The default metrics of document 003's ``ScorerBuilder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import attrs

from dicast import ChatModel, Within, check_field


@attrs.frozen
class DefaultProxy:
    """The usual proxies: ``proxy/format``, ``proxy/length`` with a least length, and ``proxy/syntax``.

    :param min: the shortest length with full credit, in characters.
    :param field: check only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); it goes to each of the three.
    """

    name = "default_proxy"

    min: int = attrs.field(default=10, validator=Within(0, inf, "0 or more"))
    field: str | None = attrs.field(default=None, validator=check_field)

    def metrics(self) -> Sequence[Mapping[str, object]]:
        """The three metrics, of weight 1 each."""
        at = {} if self.field is None else {"field": self.field}
        return [{"proxy/format": at}, {"proxy/length": {"min": self.min, **at}}, {"proxy/syntax": at}]


@attrs.frozen
class DefaultTruth:
    """The usual truth metrics: ``llm/judge``, and ``diff/match`` with the reference.

    A subject without a reference fails ``diff/match``; with ``on_failure: exclude`` the model's word stands alone.

    :param model: the chat model that is asked.
    :param criteria: what the model is to judge by beside its rubric, each in a sentence.
    """

    name = "default_truth"

    model: ChatModel
    criteria: Sequence[str] = ()

    def metrics(self) -> Sequence[Mapping[str, object]]:
        """The two metrics, of weight 1 each."""
        return [{"llm/judge": {"model": self.model, "criteria": list(self.criteria)}}, {"diff/match": {}}]
