"""The models that judge promptfoo's model-graded assertions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import attrs

from ..toolkit.yaml.nodes import Node
from .configuration import data_of, slug
from .kinds import NotCarried
from .providers import Provider, provider

_FORMS: Mapping[str, Mapping[str, Any]] = {
    "llm_rubric": {"rubric": "criterion-v1", "context": ["criterion"]},
    "factuality": {"rubric": "factuality-v1"},
    "closedqa": {"rubric": "closedqa-v1", "context": ["criterion"]},
}
"""Options of ``llm/judge`` for each item."""


@attrs.define
class Graders:
    """The judges that items ask. *model* judges assertions that name no grader; with *fixed* it judges all assertions."""

    model: Mapping[str, Any] | None
    fixed: bool = False
    judges: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def judge(self, check: str, named: Node | None) -> str:
        """Return the name of the judge for the item *check* of an assertion that names the provider *named*.

        :raises NotCarried: if dicast has no model for it.
        """
        model, name = self.model, check
        value = data_of(named)
        if value is not None and not self.fixed:
            identity, candidate = grader(value)
            if candidate is None or candidate.model is None:
                raise NotCarried(f"dicast has no model for its grader {identity}: name one with --model NAME")
            if candidate.model != self.model:
                model, name = candidate.model, self._name(f"{check}:{slug(identity)}", candidate.model)
        if model is None:
            raise NotCarried("name the model that judges: --model NAME")
        self.judges[name] = {"llm/judge": {"model": model, **_FORMS[check]}}
        return name

    def _name(self, name: str, model: Mapping[str, Any]) -> str:
        """Return *name*, with a number if a judge with another model has this name."""
        numbered = (f"{name}-{number}" if number > 1 else name for number in count(1))
        return next(entry for entry in numbered if self._model(entry) in (None, model))

    def _model(self, name: str) -> Any:
        return self.judges.get(name, {}).get("llm/judge", {}).get("model")


def grader(value: object) -> tuple[str, Provider | None]:
    """Return the name and the provider of a grader, which may be under the key ``text``, the type of its questions."""
    if isinstance(value, Mapping) and "id" not in value and "text" in value:
        value = value["text"]
    if not isinstance(value, Mapping):
        return str(value), provider(str(value), {})
    config = value.get("config")
    return str(value.get("id")), provider(str(value.get("id")), config if isinstance(config, Mapping) else {})
