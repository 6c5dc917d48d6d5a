"""The judges: each is a rubric, and what a subject needs to be judged by it."""

from __future__ import annotations

from dicast import Subject
from dicast.judging import RubricOptions, rubric_judge

from .needs import without_context, without_input, without_reference

CONTEXTS = ("contexts",)
"""The columns in which the retrieved passages are looked for."""

ROWS = ("row", "candidate")
"""The kinds that have a reference."""


@rubric_judge("rag-faithfulness-v1", context=CONTEXTS)
def faithfulness(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model which share of what an answer says is supported by what was retrieved for it.

    Whether the answer is right or helpful does not count. ``signals.dimensions`` has ``supported`` and ``uncontradicted``. A row
    needs its context; of a turn, a tool cycle or a session, what the tools returned is the context.

    After the faithfulness of RAGAS (Es et al. 2023), the groundedness of TruLens, and ARES (Saad-Falcon et al. 2023).
    """
    return without_context(subject, options.context)


@rubric_judge("rag-answer-relevance-v1")
def answer_relevance(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an answer addresses the question, whether or not it is true.

    ``signals.dimensions`` has ``addressed`` and ``to_the_point``. A row needs its input. No context is shown by default.

    After the answer relevance of RAGAS (Es et al. 2023), of TruLens, and of ARES (Saad-Falcon et al. 2023).
    """
    return without_input(subject)


@rubric_judge("rag-context-precision-v1", context=CONTEXTS)
def context_precision(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether the retrieved passages are of use for the question, and the best ones stand first.

    ``signals.dimensions`` has ``useful`` and ``ranked_first``. A row needs its input and its context, the passages in their order; with a
    reference, those passages are of use that support it. The answer does not count.

    After the context precision of the library ragas and of RAGChecker (Ru et al. 2024), and the context relevance of TruLens.
    """
    return without_input(subject) or without_context(subject, options.context)


@rubric_judge("rag-context-recall-v1", accepts=ROWS, context=CONTEXTS)
def context_recall(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model which share of the reference's claims the retrieved passages support.

    ``signals.dimensions`` has ``found`` and ``sufficient``. A row needs its reference and its context. The answer does not count.

    After the context recall of the library ragas, and the claim recall of RAGChecker (Ru et al. 2024).
    """
    return without_reference(subject) or without_context(subject, options.context)


@rubric_judge("rag-noise-sensitivity-v1", accepts=ROWS, context=CONTEXTS)
def noise_sensitivity(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model how well an answer resists retrieved passages that are wrong or beside the point.

    1 is best: the answer took nothing wrong from them. (In RAGChecker and ragas the number of this name counts what went wrong, and 0 is
    best.) ``signals.dimensions`` has ``not_misled`` and ``noise_left_out``. A row needs its reference and its context.

    After the noise sensitivity of RAGChecker (Ru et al. 2024) and of the library ragas.
    """
    return without_reference(subject) or without_context(subject, options.context)
