"""Requests of OTLP over HTTP: their sizes, their encodings, and the answers."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from typing import ClassVar

import attrs
import orjson

from dicast.toolkit.files import error_reason
from dicast.toolkit.listening import Handler

from .readers import Malformed
from .readers.otlp import is_otlp, read_otlp
from .readers.protobuf import parse_request, read_request
from .span import Span
from .spool import Spool, SpoolFull

PATH = "/v1/traces"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_ID_DIGITS = (32, 16)
_GZIP = 31  # zlib's window size for data with a gzip header


class TooLarge(Exception):
    """A body is longer than allowed once it is decompressed."""


@attrs.frozen
class Intake:
    """Settings of the handler: the *spool* for spans, the most spans of a request, and a function that wakes the reader of the spool."""

    spool: Spool
    max_spans: int
    wake: Callable[[], None]


class OtlpHandler(Handler):
    """Handler of ``POST /v1/traces``. A request is answered with 200 once its spans are on the disk."""

    paths = "POST /v1/traces"
    encodings = ("identity", "gzip")
    intake: ClassVar[Intake]

    def post(self) -> None:
        """Store the spans of a request and answer it."""
        if not self.is_allowed(PATH):
            return
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind not in (PROTOBUF, JSON):
            self.refuse(415, f"the header Content-Type must be {PROTOBUF} or {JSON}, not {kind!r:.60}")
            return
        body = self.body()
        self.server.request_has_come(self.connection)
        if body is not None:
            self._take(body, kind)

    def _take(self, body: bytes, kind: str) -> None:
        try:
            if self.headers.get("Content-Encoding", "identity") == "gzip":
                body = unpacked_body(body, self.max_body)
            spans = read_spans(body, kind)
        except TooLarge:
            self.refuse(
                413, f"a request may have {self.max_body:,} bytes after decompression; send fewer spans at a time"
            )
            return
        except (Malformed, zlib.error) as error:
            place = f" at {error.path}" if isinstance(error, Malformed) and error.path else ""
            self.refuse(400, f"{error}{place}")
            return
        if len(spans) > self.intake.max_spans:
            self.refuse(
                413, f"a request may have {self.intake.max_spans:,} spans, not {len(spans):,}; send fewer at a time"
            )
            return
        valid = [span for span in spans if is_valid(span)]
        try:
            too_many = self.intake.spool.add(valid, time.time())
        except SpoolFull:
            self.refuse(503, "too many spans wait to be judged; send them again later", {"Retry-After": "5"})
            return
        except Exception as error:
            self.refuse(503, f"the spans were not stored: {error_reason(error)}; send them again", {"Retry-After": "5"})
            raise
        self.intake.wake()
        self._accept(kind, len(spans) - len(valid), too_many)

    def _accept(self, kind: str, invalid: int, too_many: int) -> None:
        reasons = [
            f"{count:,} {fault}" for count, fault in ((invalid, "without a trace id and a span id"), (too_many, "over the limit of their traces")) if count
        ]  # fmt: skip
        message = f"spans rejected: {', '.join(reasons)}" if reasons else ""
        rejected = invalid + too_many
        if kind == JSON:
            partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": message}} if rejected else {}
            self.answer_bytes(200, orjson.dumps(partial), {"Content-Type": JSON})
            return
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
            response.partial_success.error_message = message
        self.answer_bytes(200, response.SerializeToString(), {"Content-Type": PROTOBUF})


def unpacked_body(body: bytes, most: int) -> bytes:
    """Return a body without gzip.

    :raises TooLarge: if it has more than *most* bytes; no further bytes are decompressed.
    :raises zlib.error: if it is not gzip, or cut.
    """
    stream = zlib.decompressobj(_GZIP)
    data = stream.decompress(body, most + 1)
    if len(data) > most:
        raise TooLarge
    if not stream.eof:
        raise zlib.error("the gzip data are cut")
    if stream.unused_data:
        raise zlib.error("something follows the end of the gzip data")
    return data


def read_spans(body: bytes, kind: str) -> Sequence[Span]:
    """Return the spans of a request.

    :raises Malformed: if it is not an OTLP request.
    """
    if kind == PROTOBUF:
        return [*read_request(parse_request(body))]
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"this is not JSON: {error}", "") from error
    if not isinstance(document, dict):
        raise Malformed("a request is an object with 'resourceSpans'", "")
    if not document:
        return []
    if not is_otlp(document):
        raise Malformed(f"a request is an object with 'resourceSpans', not {', '.join(document):.60}", "")
    return [*read_otlp(document)]


def is_valid(span: Span) -> bool:
    """Return whether the ids of a span have the right length and are not all zeros."""
    ids = (span.trace_id, span.id)
    return all(len(id_) == digits and id_.strip("0") for id_, digits in zip(ids, _ID_DIGITS, strict=True))
