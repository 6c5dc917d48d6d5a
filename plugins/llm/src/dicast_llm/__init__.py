"""Judges that ask a language model."""

from __future__ import annotations

from dicast import hookimpl

from .judge import LlmJudge
from .jury import Jury
from .pairwise import Pairwise


@hookimpl
def dicast_judges() -> list[type]:
    """Return the judges ``llm/judge``, ``llm/jury`` and ``llm/pairwise``."""
    return [Jury, LlmJudge, Pairwise]
