"""Media in requests: the kinds that the endpoint reads, learned from its refusals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

import attrs

from ..._kernel.values import ChatRequest, Media, Message
from .answers import Answer, Complaint
from .faults import CallFault

_STATUSES = (400, 404, 405, 415, 422, 500, 501)
_VAGUE = (400, 415, 422)
"""Statuses of a refusal that may only name the content; with any other status the error must state that the content is not supported."""
_MOST_CHARS = 4_000
"""The most characters of a complaint that are searched: some endpoints repeat the request in it."""
_KINDS: Mapping[str, re.Pattern[str]] = {
    "image": re.compile(r"image|vision|visual|picture", re.IGNORECASE),
    "audio": re.compile(r"audio|sound|speech", re.IGNORECASE),
    "file": re.compile(r"\bfiles?\b|\bfile_|pdf|document", re.IGNORECASE),
}
_CONTENT = re.compile(
    r"multi-?modal|mmproj|content[ _.\-\[\]0-9>]*(type|part|list|block|str)|messages?\W.*\bcontent\b|must be a string|text content|unknown variant"
    r"|expected (a |to be a )?(str|string)",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"((not|n't|cannot|unable to|no)\s(\w+\s){0,2}(support|accept|allow)|do(es)?( not|n't)\s(\w+\s){0,2}(handle|read|process|take|see))(s|ed|ing)?"
    r"\s+(\w+\s+){0,3}"
    r"(image|audio|file|vision|visual|pdf|document|multi-?modal|media|content)"
    r"|(image|audio|file|vision|visual|pdf|document|media|multi-?modal)\S*\s+(\w+\s+){0,3}(not|n't|un)\s?(supported|enabled|allowed|available|permitted)"
    r"|unsupported content|only supported by|that support (image|audio|file)|text[- ]only|not a (multi-?modal|vision)|no (vision|image|audio)|mmproj"
    r"|unknown variant|must be a string|input should be (a valid string|'text')|expected (a |to be a )?(str|string)"
    r"|at most 0",
    re.IGNORECASE,
)
_ONE_ITEM = re.compile(
    r"(invalid|unsupported|corrupt\w*|broken|empty|malformed|bad) (\w+ )?(image|audio|file|pdf|base64)|(image|audio|file|pdf) \S*\s?(is |are )?"
    r"(invalid|corrupt|empty|too|unreadable|not a valid)|could not (process|decode|read|load|fetch|download)|failed to (process|decode|read|load|fetch|download)"
    r"|unable to (decode|load|fetch|download|identify)|cannot (identify|decode)|too (large|many|small|big|long)|exceed|at most [1-9]|downloading|media_?type|mime"
    r"|pixel|dimension",
    re.IGNORECASE,
)
_ITEM_CODES = re.compile(
    r"(invalid|unsupported|empty|failed|image|audio|file)_\w*(image|audio|file|base64|error|large|small|format)\w*"
)


def count_media(request: ChatRequest) -> Mapping[str, int]:
    """Return the number of media in *request* by kind."""
    return Counter(media.kind for message in request.messages for media in message.media)


@attrs.define
class MediaReader:
    """The media that an endpoint reads. *accepts* returns whether its format has a part for a media item; *refused* has the kinds that it refused."""

    accepts: Callable[[Media], bool]
    refused: set[str] = attrs.field(factory=set)

    def sent(self, request: ChatRequest) -> ChatRequest:
        """Return *request* with markers in place of media that the endpoint does not read.

        :raises CallFault: if the request needs them.
        """
        if all(self._reads(media) for message in request.messages for media in message.media):
            return request
        sent = attrs.evolve(request, messages=tuple(map(self._message, request.messages)))
        if request.needs_media:
            unread = Counter(count_media(request)) - Counter(count_media(sent))
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(unread.items()))
            message = f"the model does not read {kinds}; choose a model that does, or evidence: {{media: auto}} to show markers"
            raise CallFault(message, again=False, kind="missing_input")
        return sent

    def learn(self, answer: Answer, sent: ChatRequest) -> bool:
        """Note the kinds of media that *answer* refuses; return whether it refuses any that *sent* has."""
        return self.learn_kinds(answer, set(count_media(sent)))

    def learn_kinds(self, answer: Answer, kinds: set[str]) -> bool:
        """Note the *kinds* of media that *answer* refuses; return whether it refuses any."""
        refused = refused_among(answer, kinds)
        self.refused |= refused
        return bool(refused)

    def _reads(self, media: Media) -> bool:
        return media.kind not in self.refused and self.accepts(media)

    def _message(self, message: Message) -> Message:
        if not message.parts:
            return message
        parts = (part if isinstance(part, str) or self._reads(part) else part.marker for part in message.parts)
        shortened = Message.of_parts(message.role, parts, cache=message.cache)
        return attrs.evolve(shortened, content=message.content)


def refused_kinds(answer: Answer, sent: ChatRequest) -> set[str]:
    """Return the kinds of media in *sent* that *answer* says the model does not read; none if it refuses one item, or anything else."""
    return refused_among(answer, set(count_media(sent)))


def refused_among(answer: Answer, candidates: set[str]) -> set[str]:
    """Return the kinds of the sent media that the model does not read, by the error in *answer*."""
    if not candidates or answer.status not in _STATUSES:
        return set()
    complaint = answer.complaint()
    text = f"{complaint.message[:_MOST_CHARS]} {complaint.parameter or ''}"
    kinds = {kind for kind in candidates if _KINDS[kind].search(text)}
    is_stated = bool(_UNSUPPORTED.search(text))
    if not (kinds or _CONTENT.search(text)) or complaint.is_policy:
        return set()
    if not is_stated and (answer.status not in _VAGUE or _is_about_one(complaint)):
        return set()
    return kinds or candidates


def _is_about_one(complaint: Complaint) -> bool:
    """Return whether one image, sound or file is at fault, and not the model."""
    return bool(_ONE_ITEM.search(complaint.message[:_MOST_CHARS])) or any(map(_ITEM_CODES.fullmatch, complaint.codes))
