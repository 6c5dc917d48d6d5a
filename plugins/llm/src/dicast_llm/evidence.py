"""The evidence of a subject for a judge: the sections of its question, fitted into a number of characters, and their record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Generic, Literal, TypeAlias, TypeVar

import attrs
import orjson

from dicast import Failure, Media, Subject, TraceEvent
from dicast.judging import escape_invisible
from dicast.toolkit.gallery import Gallery, MediaMode, media_of
from dicast.toolkit.json_values import MISSING, lookup
from dicast.toolkit.media import Urls
from dicast.toolkit.printable import one_line
from dicast.toolkit.references import is_missing

from . import room
from .conversation import (
    KINDS,
    Conversation,
    TranscriptMessage,
    conversation,
    has_trace,
    hides_content,
    log,
    transcript,
)
from .material import Hints, activity, summary, with_context
from .media import count_media, texts_of
from .room import ShownSection
from .section import Section

MAX_CHARS = 60_000
_SMALL = 8  # each section next to the conversation has at most an eighth of the characters


@attrs.frozen
class EvidenceOptions:
    """The evidence that a judge shows.

    :param kind: ``full`` or ``summary``, as in the option ``evidence``.
    :param reasoning: show the reasoning of the judged model too, if the trace has it.
    :param media: ``auto`` sends images, sounds and files to a model that reads them, and shows any other model a marker with type and size;
        ``signals.evidence.hidden`` counts the markers. ``show`` fails the subject instead of showing a marker. ``mark`` shows markers only.
    :param urls: the addresses of media that the model's endpoint may fetch: none (``mark``), any (``allow``), or addresses of a list of
        hosts (``[example.org, "*.example.org"]``). dicast itself fetches nothing.
    """

    kind: Literal["full", "summary"] = "full"
    reasoning: bool = False
    media: MediaMode = "auto"
    urls: Urls = "mark"


EvidenceKind: TypeAlias = Literal["full", "summary"] | EvidenceOptions


def evidence_options(value: EvidenceKind) -> EvidenceOptions:
    """Return the option ``evidence``, which may be its kind alone, as options."""
    return EvidenceOptions(value) if isinstance(value, str) else value


@attrs.frozen
class Showing:
    """The extent of the evidence: the options of a judge, as :class:`~dicast_llm.LlmJudge` explains them."""

    evidence: EvidenceOptions = EvidenceOptions()
    max_evidence_chars: int = MAX_CHARS
    context: Sequence[str] = ()
    max_chars: int | None = None
    hints: Hints = attrs.field(factory=lambda: Hints((), ()))


@attrs.frozen
class Compared:
    """Two titled *outputs* to show in place of the subject's output.

    *subject_title* is the title of the subject's own output. *reference* is true if the reference is shown too.
    """

    outputs: tuple[tuple[str, object], tuple[str, object]]
    subject_title: str
    reference: bool


@attrs.frozen
class Evidence:
    """The evidence of one subject: *media*, or their markers, by the characters that hold their places, and the *counts* of all by kind."""

    parts: tuple[ShownSection, ...]
    media: Mapping[str, Media | str] = attrs.field(factory=dict)
    counts: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections, in the order in which they are shown."""
        return tuple(part.section for part in self.parts)

    @property
    def texts(self) -> tuple[str, ...]:
        """All shown texts."""
        return tuple(text for part in self.parts for text in _all_texts(part.section))

    def signals(self, read: Mapping[str, int]) -> Mapping[str, object]:
        """Return the record of the evidence: sections, characters shown and cut, a digest, and the number of media that were not *read*.

        ``invisible`` counts the invisible characters that were shown as escapes.
        """
        parts_shown = [part for part in self.parts if part.section.text is not None]
        digested: list[object] = [[part.section.title, *part.section.cut, _plain(part.section)] for part in self.parts]
        digested += [media if isinstance(media, str) else media.key() for media in self.media.values()]
        hidden = Counter(self.counts) - Counter(read)
        invisible = sum(escape_invisible(_plain(part.section))[1] for part in self.parts)
        return {
            "sections": [part.section.title.partition(" (")[0] for part in parts_shown],
            "chars": sum(part.chars for part in parts_shown),
            "cut": sum(max(0, part.original_chars - part.chars) for part in self.parts),
            "digest": sha256(orjson.dumps(digested)).hexdigest(),
            **({"hidden": dict(sorted(hidden.items()))} if hidden else {}),
            **({"invisible": invisible} if invisible else {}),
        }


T = TypeVar("T")
_MAX_GATHERED = 64


@attrs.define
class Prepared(Generic[T]):
    """Evidence that an estimate has gathered for a later call. It is limited to the newest subjects, because a call may never follow."""

    _gathered: dict[int, tuple[Subject, T]] = attrs.field(factory=dict)

    def keep(self, subject: Subject, make: Callable[[], T]) -> T:
        """Return the evidence of *subject*; if it is missing, store the result of *make*."""
        entry = self._gathered.get(id(subject))
        if entry is not None and entry[0] is subject:
            return entry[1]
        if len(self._gathered) >= _MAX_GATHERED:
            del self._gathered[next(iter(self._gathered))]
        self._gathered[id(subject)] = (subject, evidence := make())
        return evidence

    def take(self, subject: Subject, make: Callable[[], T]) -> T:
        """Return the evidence of *subject*, or the result of *make*, and remove it."""
        entry = self._gathered.pop(id(subject), None)
        return entry[1] if entry is not None and entry[0] is subject else make()


def gather(subject: Subject, showing: Showing, compared: Compared | None = None) -> Evidence | Failure:
    """Return the evidence of *subject*; a Failure ``missing_input`` if there is none, or if media in it cannot be sent."""
    if compared is not None and subject.output is None:
        return _missing(subject)
    showing = attrs.evolve(showing, hints=with_context(showing.hints, subject)) if compared is None else showing
    options = showing.evidence
    is_trace = has_trace(subject)
    events = log(subject) if is_trace else []  # a session's log is long, and is read once
    gallery = Gallery(options.media, options.urls, partial(texts_of, subject, events))
    if not is_trace:
        return _with_media(_row(subject, showing, compared, gallery), subject, gallery)
    hidden = hides_content(subject, events)
    if options.kind == "full" and not hidden:
        gallery.counts.update(count_media(events))
        return _with_media(_traced(subject, events, showing, compared, gallery), subject, gallery)
    if subject.kind != "turn":
        why = "the source has hashes and sizes only" if hidden else "evidence: summary shows turns only"
        return Failure("missing_input", f"{subject.kind} {subject.id} has no evidence to show: {why}")
    messages = (event for event in events if event.turn_id == subject.id and event.type == "message.sent")
    gallery.counts.update(count_media(messages))
    return _with_media(_row(subject, showing, compared, gallery), subject, gallery)


def _with_media(evidence: Evidence | Failure, subject: Subject, gallery: Gallery) -> Evidence | Failure:
    """Return *evidence* with the media of *gallery*; a Failure if one of them is missing."""
    if isinstance(evidence, Failure) or not gallery.counts:
        return evidence
    if (why := gallery.missing("evidence: {media: mark}")) is not None:
        return Failure("missing_input", f"{subject.kind} {subject.id}: {why}")
    return attrs.evolve(evidence, media=gallery.newest(), counts=gallery.counts)


def _traced(
    subject: Subject, events: Sequence[TraceEvent], showing: Showing, compared: Compared | None, gallery: Gallery
) -> Evidence | Failure:
    reasoning = showing.evidence.reasoning
    messages = conversation(subject, events, gallery, answered=compared is None, reasoning=reasoning)
    if not messages.messages and compared is None:
        return Failure(
            "missing_input", f"{subject.kind} {subject.id} has no evidence to show: no messages and no tool calls"
        )
    left = showing.max_evidence_chars
    texts = [] if compared is None else [(title, gallery.text(output)) for title, output in compared.outputs]
    outputs = _leveled(texts, left // 2, showing.max_chars)
    context = [*_context_sections(subject, messages, showing, compared, gallery), *outputs]
    left -= sum(part.chars for part in context)
    return Evidence((*_conversation(messages, max(0, left), showing.max_chars), *context, *_hints(showing.hints)))


def _conversation(dialog: Conversation, left: int, most: int | None) -> Iterator[ShownSection]:
    policy = dialog.policy or ""
    for_policy, left = room.shares(len(policy), room.size(dialog.messages), left)
    if policy:
        yield room.text("POLICY", policy, for_policy if most is None else min(for_policy, most))
    section = room.fit_messages("CONVERSATION", dialog.messages, left, most)
    if dialog.earlier:
        # if the subject's own messages had to be cut, nothing is left for earlier turns
        spare = left - section.chars if room.size(dialog.messages) <= left else 0
        yield room.earlier("EARLIER TURNS", dialog.earlier, spare, most)
    if dialog.messages:
        yield section


def _context_sections(
    subject: Subject, dialog: Conversation, showing: Showing, compared: Compared | None, gallery: Gallery
) -> Iterator[ShownSection]:
    most = showing.max_evidence_chars // _SMALL
    feedback = "FEEDBACK" if compared is None else f"FEEDBACK (on {compared.subject_title})"
    for title, text in ((feedback, dialog.feedback), ("LIFECYCLE", dialog.lifecycle)):
        if text is not None:
            yield room.text(title, text, most)
    if not is_missing(subject.reference) and compared is not None and compared.reference:
        yield room.text("REFERENCE", gallery.text(subject.reference), most)
    if columns := _columns(subject, showing.context, gallery):
        yield room.fit_messages("CONTEXT", columns, most, showing.max_chars)


def _row(subject: Subject, showing: Showing, compared: Compared | None, gallery: Gallery) -> Evidence | Failure:
    """Return the evidence of a row, of a turn without messages, or of a workload."""
    if subject.output is None and (subject.kind in KINDS or not subject.events):
        return _missing(subject)
    if compared is None and subject.kind in ("turn", "workload"):
        summary_parts = summary(subject, showing.hints, showing.max_chars, gallery)
        if subject.kind == "turn" and all(part.section.text is None for part in summary_parts[:3]):
            return Failure("missing_input", f"turn {subject.id} has no evidence to show: no texts and no tool calls")
        return Evidence(summary_parts)
    texts = list(_texts(subject, compared, gallery))
    columns = _columns(subject, showing.context, gallery)
    left = showing.max_evidence_chars - min(room.size(columns), showing.max_evidence_chars // _SMALL)
    parts = _leveled(texts, left, showing.max_chars)
    if columns:
        spare = max(0, showing.max_evidence_chars - sum(part.chars for part in parts))
        parts.insert(
            len(texts) - 2 * (compared is not None), room.fit_messages("CONTEXT", columns, spare, showing.max_chars)
        )
    if media := [*_media(subject, showing.context, gallery)]:
        parts.insert(0, room.text("MEDIA", "\n".join(media), left))
    if compared is None and (lines := activity(subject.events)) is not None:
        parts.append(room.text("TOOL ACTIVITY", lines, left))
    return Evidence((*parts, *_hints(showing.hints)))


def _missing(subject: Subject) -> Failure:
    return Failure("missing_input", f"{subject.kind} {subject.id} has no output to judge")


def _texts(subject: Subject, compared: Compared | None, gallery: Gallery) -> Iterator[tuple[str, str]]:
    if subject.input is not None and (subject.input != "" or compared is not None):
        yield "INPUT", gallery.text(subject.input)
    if compared is None and subject.output is not None:
        yield "OUTPUT", gallery.text(subject.output)
    if not is_missing(subject.reference) and (compared is None or compared.reference):
        yield "REFERENCE", gallery.text(subject.reference)
    if compared is not None:
        yield from ((title, gallery.text(output)) for title, output in compared.outputs)


def _media(subject: Subject, named: Sequence[str], gallery: Gallery) -> Iterator[str]:
    """Yield a line for each of the media in the context that is not one of the columns *named*."""
    for name, value in subject.context.items():
        parts = None if name in named else media_of(value)
        for number, part in enumerate(parts or (), 1):
            count = f" {number}" if parts is not None and len(parts) > 1 else ""
            yield f"{one_line(name)}{count}: {gallery.place(part)}"


def _leveled(texts: Sequence[tuple[str, str]], left: int, most: int | None) -> list[ShownSection]:
    """Return the sections of *texts*. The longest texts are cut so that all texts have at most *left* characters together."""
    limit = room.level([len(text) for _, text in texts], left)
    return [room.text(title, text, limit if most is None else min(limit, most)) for title, text in texts]


def _columns(subject: Subject, paths: Iterable[str], gallery: Gallery) -> list[TranscriptMessage]:
    values = ((path, lookup(subject.context, path)) for path in paths)
    return [message for path, value in values if value is not MISSING for message in _column(path, value, gallery)]


def _column(path: str, value: object, gallery: Gallery) -> Iterator[TranscriptMessage]:
    """Yield a message for the column; for a list, such as retrieved passages, a message for each item, so that no item can imitate another."""
    if not isinstance(value, list | tuple):
        yield TranscriptMessage(path, gallery.text(value))
        return
    for number, item in enumerate(value, 1):
        yield TranscriptMessage(f"{path} {number}", gallery.text(item))


def _hints(hints: Hints) -> Iterator[ShownSection]:
    if (lines := hints.render()) is not None:
        yield room.text("GROUNDING HINTS", lines, len(lines))


def _all_texts(section: Section) -> Iterator[str]:
    if isinstance(section.text, tuple):
        for _, message in section.text:
            yield from (message.head, message.text)
    else:
        yield section.text or ""


def _plain(section: Section) -> str:
    text = section.text
    if isinstance(text, tuple):
        return transcript(text)
    return text or ""
