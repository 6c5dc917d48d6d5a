"""Which model a workload wants to be judged by."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dicast import ChatModel, Failure, Subject, nearest


@attrs.frozen
class Choice:
    """The model of a judge, and *others* by the names that a workload's ``llm_judge_model`` may have for them."""

    model: ChatModel
    others: Mapping[str, ChatModel]

    def of(self, subject: Subject) -> ChatModel | Failure:
        """The model to ask about *subject*; ``rubric_invalid`` where its block names one that is not here."""
        block = subject.context.get("evaluate") if subject.kind == "workload" else None
        wanted = block.get("llm_judge_model") if isinstance(block, Mapping) else None
        if wanted is None:
            return self.model
        if isinstance(wanted, str) and wanted in self.others:
            return self.others[wanted]
        own = _name(self.model)
        if own is not None and wanted in (own, str(wanted).partition(":")[0] + ":" + own):
            return self.model
        return Failure("rubric_invalid", f"workload {subject.id}: {self._unknown(str(wanted), own)}")

    def _unknown(self, wanted: str, own: str | None) -> str:
        known = [*self.others, *([own] if own else [])]
        near = nearest(wanted, known)
        hint = f", did you mean {near!r}?" if near else ""
        there = f" (there is: {', '.join(known)})" if known else ""
        return (
            f"llm_judge_model {wanted!r} is no model of this judge{hint}{there}; give it under its option models, "
            f"as {{{wanted!r}: MODEL}}, where MODEL is a component or a name from define"
        )


def _name(model: object) -> str | None:
    """What a chat model is called at its provider, also where another one stands around it; None where it has no name."""
    name = getattr(model, "model", None)
    return name if name is None or isinstance(name, str) else _name(name)
