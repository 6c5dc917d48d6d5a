"""Results of other tools as rows with their recorded scores."""

from __future__ import annotations

from dicast import Source, hookimpl

from .helm import Helm
from .langfuse import Langfuse
from .langsmith import LangSmith
from .lm_eval import LmEval
from .mlflow import MLflow
from .openai_batch import OpenAIBatch
from .promptfoo import Promptfoo

__all__ = ["Helm", "LangSmith", "Langfuse", "LmEval", "MLflow", "OpenAIBatch", "Promptfoo"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer the sources of results: of promptfoo, lm-evaluation-harness, batches, Langfuse, LangSmith, MLflow and HELM."""
    return [Promptfoo, LmEval, OpenAIBatch, Langfuse, LangSmith, MLflow, Helm]
