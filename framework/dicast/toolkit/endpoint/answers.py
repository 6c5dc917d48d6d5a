"""Responses of an endpoint, and the errors in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
import orjson

_QUOTA_CODES = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_hard_limit", "billing_not_active", "billing_error",
    "account_deactivated", "account_disabled", "account_suspended", "access_terminated", "insufficient_balance",
    "insufficient_credits", "exceeded_current_quota_error", "arrearage", "payment_required", "organization_restricted",
    "enforced_spend_limit_reached",
})  # fmt: skip
_QUOTA_WORDS = re.compile(
    r"credit balance is too low|billing hard limit|insufficient (balance|credits|quota)|account (is |has been )?(not active|deactivated|disabled|suspended)"
    r"|organization has been (disabled|restricted)|requires more credits|reached your specified \w*\s?(api )?usage limits",
    re.IGNORECASE,
)
_POLICY_CODES = frozenset({
    "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "content_filter_error", "invalid_prompt",
    "data_inspection_failed", "moderation_blocked", "safety_error", "prompt_blocked",
})  # fmt: skip
_POLICY_WORDS = re.compile(
    r"content management policy|content filter|content[ _]policy|usage polic(y|ies)|data may contain inappropriate content|requires moderation"
    r"|input was flagged|safety (system|settings|reasons)|prompt was blocked|content risk|content exists risk",
    re.IGNORECASE,
)
_MAY_BE_REFUSALS = (400, 402, 403, 422, 429)


@attrs.frozen
class Complaint:
    """The error in a response.

    :param message: the endpoint's words on one line; it may be long, and may repeat parts of the request.
    :param codes: the error's ``code``, ``type`` and ``status``, in small letters.
    :param parameter: the name of the parameter at fault, if the endpoint names it.
    """

    message: str
    codes: frozenset[str] = frozenset()
    parameter: str | None = None

    @property
    def is_about_money(self) -> bool:
        """True if the account has no quota or credit left, or is closed: no later call can succeed."""
        return bool(self.codes & _QUOTA_CODES) or bool(_QUOTA_WORDS.search(self.message))

    @property
    def is_policy(self) -> bool:
        """True if the endpoint refuses the content of this request."""
        return bool(self.codes & _POLICY_CODES) or bool(_POLICY_WORDS.search(self.message))


@attrs.frozen
class Answer:
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def complaint(self) -> Complaint:
        """Return the error that the response reports."""
        try:
            body = orjson.loads(self.data)
        except orjson.JSONDecodeError:
            return Complaint(joined_line(self.data.decode(errors="replace")))
        return complaint(body)

    @property
    def is_out_of_money(self) -> bool:
        """True if the account has no quota or credit left, or is closed."""
        return self.status in _MAY_BE_REFUSALS and self.complaint().is_about_money

    @property
    def is_refused_by_policy(self) -> bool:
        """True if the endpoint refuses the content of this request."""
        return self.status in _MAY_BE_REFUSALS and self.complaint().is_policy


def complaint(body: object) -> Complaint:
    """Return the error in *body*, the JSON value of a response."""
    if isinstance(body, list) and len(body) == 1:  # the form of Gemini's endpoint
        body = body[0]
    match body:
        case {"error": {"message": str(message)} as error}:
            raw = _raw(error)
            return Complaint(joined_line(f"{message} ({raw})" if raw else message), _codes(error), _parameter(error))
        case {"error": str(message)} | {"message": str(message)} | {"detail": str(message)}:
            return Complaint(joined_line(message), _codes(body), _parameter(body))
        case {"detail": [{"loc": [*place]}, *_] as details}:
            return Complaint(joined_line(json_bytes(details).decode()), _codes(body), str(place[-1]) if place else None)
    return Complaint(joined_line(json_bytes(body).decode()))


def json_bytes(value: object) -> bytes:
    """Return *value*, a part of a response, as JSON; if it is nested too deeply to be written, a JSON text with this reason."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return b'"JSON that is nested too deeply"'


def _raw(error: Mapping[str, Any]) -> str:
    """Return the text of the provider behind a gateway, which OpenRouter passes on."""
    match error:
        case {"metadata": {"raw": str(raw)}}:
            return raw
    return ""


def _codes(error: Any) -> frozenset[str]:
    inner = error.get("innererror") if isinstance(error.get("innererror"), Mapping) else {}
    details = error.get("details") if isinstance(error.get("details"), Mapping) else {}
    codes = [error.get(name) for name in ("code", "type", "status")] + [inner.get("code"), details.get("error_code")]
    return frozenset(str(code).lower() for code in codes if isinstance(code, str | int))


def _parameter(error: Any) -> str | None:
    parameter = error.get("param")
    return parameter if isinstance(parameter, str) else None


def joined_line(text: str) -> str:
    """Return *text* with each run of blanks and line breaks as one blank."""
    return " ".join(text.split())
