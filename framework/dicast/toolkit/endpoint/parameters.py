"""Parameters of a request that an endpoint refuses, found in the words of its error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from .answers import Answer, Complaint

REFUSED = (400, 404, 422, 500, 501)
"""Statuses of a refused parameter; 404 and 500 only if the error names the parameter."""

SYSTEM_ROLE = "system_role"
"""The name for messages of the role ``system``."""

_SPELLINGS: Mapping[str, str] = {
    "response_format": r"response_?format|json_?schema|json_object|json mode|structured[ _]outputs?|grammar|guided|output_config",
    SYSTEM_ROLE: r"system (role|message|prompt|instruction)|role:? ?['\"`]?system|(does not|doesn't) support '(system|developer)'"
    r"|developer instruction|roles must alternate|messages\[\d+\]\.role|input should be '(user|assistant)'",
    "temperature": r"temperature",
    "top_p": r"top[_-]?p",
    "seed": r"(?<![a-z])seed(?![a-z])",
    "stop": r"(?<![a-z])stop(?![a-z])( ?sequences?)?(?! reason)|stop_sequences",
    "reasoning_effort": r"reasoning[_. ]?effort",
    "top_logprobs": r"top_?logprobs",
    "logprobs": r"log_?probs",
    "max_tokens": r"(?<![a-z_])max_?tokens",
    "max_completion_tokens": r"max_?completion_?tokens",
    "cache_control": r"cache_?control",
}
_LENGTHS = re.compile(
    r"context[ _](length|window|size)|too (large|long|many)|exceeds? the|maximum (allowed|context|number)|at most|reduce the length"
    r"|n_ctx|longer than|(above|below|exceeds) (the )?m(ax|in)imum|(greater|less|larger|smaller) than|must be (at least|between|positive)|range of",
    re.IGNORECASE,
)
"""Words about an amount: another name of the limit would be refused too."""
_LIMITS = ("max_tokens", "max_completion_tokens")


def named_parameter(answer: Answer, sent: Collection[str]) -> str | None:
    """Return the parameter among *sent* that the error in *answer* names; None if it names none.

    :param sent: the names of the request's parameters, with :data:`SYSTEM_ROLE` for a system message.
    """
    if answer.status not in REFUSED:
        return None
    complaint = answer.complaint()
    if complaint.is_about_money or complaint.is_policy:
        return None
    named = [name for name in (_stated(complaint, sent), *_mentioned(complaint.message, sent)) if name is not None]
    is_about_length = _LENGTHS.search(complaint.message) is not None
    return next((name for name in named if not (is_about_length and name in _LIMITS)), None)


def is_about_length(answer: Answer) -> bool:
    """Return whether the error in *answer* is about the length of the request or of its reply."""
    complaint = answer.complaint()
    return "context_length_exceeded" in complaint.codes or _LENGTHS.search(complaint.message) is not None


def _stated(complaint: Complaint, sent: Collection[str]) -> str | None:
    """Return the parameter that a separate field of the error names."""
    parameter = (complaint.parameter or "").partition(".")[0]
    return parameter if parameter in sent else None


def _mentioned(message: str, sent: Collection[str]) -> list[str]:
    """Return the parameters that *message* mentions, in the order of the text."""
    matches = {name: re.search(_SPELLINGS[name], message, re.IGNORECASE) for name in sent if name in _SPELLINGS}
    places = sorted((match.start(), name) for name, match in matches.items() if match is not None)
    return [name for _, name in places]
