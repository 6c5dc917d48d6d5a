"""The models that judge promptfoo's model-graded assertions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .._toolkit.yaml_nodes import Node
from .configuration import data_of, slug
from .kinds import NotCarried
from .providers import provider

_FORMS: Mapping[str, Mapping[str, Any]] = {
    "llm_rubric": {"rubric": "criterion-v1", "context": ["criterion"]},
    "factuality": {"rubric": "factuality-v1"},
    "closedqa": {"rubric": "closedqa-v1", "context": ["criterion"]},
}
"""Options of ``llm/judge`` for each item."""


@attrs.define
class Graders:
    """The judges that items ask. *model* judges where an assertion names no grader; *fixed* says that it judges everywhere."""

    model: Mapping[str, Any] | None
    fixed: bool = False
    judges: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def judge(self, check: str, named: Node | None) -> str:
        """Return the name of the judge for the item *check* of an assertion that names the provider *named*.

        :raises NotCarried: where dicast has no model for it.
        """
        model, name = self.model, check
        value = data_of(named)
        if value is not None and not self.fixed:
            identity = str(value.get("id")) if isinstance(value, Mapping) else str(value)
            config = value.get("config") if isinstance(value, Mapping) else None
            candidate = provider(identity, config if isinstance(config, Mapping) else {})
            if candidate is None or candidate.model is None:
                raise NotCarried(f"dicast has no model for its grader {identity}: name one with --model NAME")
            if candidate.model != self.model:
                model, name = candidate.model, f"{check}:{slug(identity)}"
        if model is None:
            raise NotCarried("name the model that judges: --model NAME")
        self.judges[name] = {"llm/judge": {"model": model, **_FORMS[check]}}
        return name
