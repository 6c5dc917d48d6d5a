"""Choice of the model that judges a workload."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dicast import ChatModel, Failure, Subject, nearest


@attrs.frozen
class Choice:
    """The model of a judge, and *other_models* by the names that a workload's ``llm_judge_model`` may have for them."""

    model: ChatModel
    other_models: Mapping[str, ChatModel]

    def of(self, subject: Subject) -> ChatModel | Failure:
        """Return the model to ask about *subject*; ``rubric_invalid`` if its block names an unknown model."""
        block = subject.context.get("evaluate") if subject.kind == "workload" else None
        model_name = block.get("llm_judge_model") if isinstance(block, Mapping) else None
        if model_name is None:
            return self.model
        if isinstance(model_name, str) and model_name in self.other_models:
            return self.other_models[model_name]
        name = _name(self.model)
        if name is not None and model_name in (name, str(model_name).partition(":")[0] + ":" + name):
            return self.model
        return Failure("rubric_invalid", f"workload {subject.id}: {self._unknown(str(model_name), name)}")

    def _unknown(self, unknown_name: str, model_name: str | None) -> str:
        names = [*self.other_models, *([model_name] if model_name else [])]
        near = nearest(unknown_name, names)
        hint = f", did you mean {near!r}?" if near else ""
        available = f" (its models: {', '.join(names)})" if names else ""
        return (
            f"llm_judge_model {unknown_name!r} is not a model of this judge{hint}{available}; add it to the judge's option models, "
            f"as {{{unknown_name!r}: MODEL}}, where MODEL is a component or a name from define"
        )


def _name(model: object) -> str | None:
    """Return the name of a chat model at its provider, also of a model inside another one; None without a name."""
    name = getattr(model, "model", None)
    return name if name is None or isinstance(name, str) else _name(name)
