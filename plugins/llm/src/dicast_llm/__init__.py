"""Judges that ask a language model."""

from __future__ import annotations

from dicast import hookimpl

from .judge import LlmJudge
from .jury import Jury
from .pairwise import Pairwise


@hookimpl
def dicast_judges() -> list[type]:
    """Offer what this plugin has."""
    return [Jury, LlmJudge, Pairwise]
