"""The judges: each is a rubric with a check of the fields that a subject needs for it."""

from __future__ import annotations

from dicast import Subject
from dicast.judging import RubricOptions, rubric_judge

from .needs import without_context, without_input, without_reference

CONTEXTS = ("contexts",)
"""The default columns of the retrieved passages."""

ROWS = ("row", "candidate")
"""The kinds that have a reference."""


@rubric_judge("rag-faithfulness-v1", context=CONTEXTS)
def faithfulness(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model which share of an answer's claims the retrieved passages support.

    Correctness and helpfulness of the answer do not count. ``signals.dimensions`` has ``supported`` and ``uncontradicted``. A row
    needs its context. The context of a turn, a tool cycle or a session is the output of its tools.

    After the faithfulness of RAGAS (Es et al. 2023), the groundedness of TruLens, and ARES (Saad-Falcon et al. 2023).
    """
    return without_context(subject, options.context)


@rubric_judge("rag-answer-relevance-v1")
def answer_relevance(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an answer addresses the question, true or not.

    ``signals.dimensions`` has ``addressed`` and ``to_the_point``. A row needs its input. No context is shown by default.

    After the answer relevance of RAGAS (Es et al. 2023), of TruLens, and of ARES (Saad-Falcon et al. 2023).
    """
    return without_input(subject)


@rubric_judge("rag-context-precision-v1", context=CONTEXTS)
def context_precision(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether the retrieved passages are useful for the question and ranked best first.

    ``signals.dimensions`` has ``useful`` and ``ranked_first``. A row needs its input and its context, with the passages in their order.
    With a reference, a passage is useful if it supports the reference. The answer does not count.

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
    """Ask a model how well an answer resists retrieved passages that are wrong or irrelevant.

    1 is best: the answer took no error from the passages. (The number of this name in RAGChecker and ragas counts errors, and 0 is
    best.) ``signals.dimensions`` has ``not_misled`` and ``noise_left_out``. A row needs its reference and its context.

    After the noise sensitivity of RAGChecker (Ru et al. 2024) and of the library ragas.
    """
    return without_reference(subject) or without_context(subject, options.context)
