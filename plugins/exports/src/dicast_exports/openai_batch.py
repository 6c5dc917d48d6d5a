"""The source ``exports/openai_batch``: the results of a batch of an API in the form of OpenAI."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import DataError
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputFile
from dicast.toolkit.input_files import InputFiles
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.temporary import temporary_database

from .export import ExportSource, Row
from .values import Value, first, mapping, message_of, objects, text

_MOST_NAMES = 5
"""The most requests that a note names."""

_REQUEST = {"custom_id", "url", "body"}
_FIRST_ERROR = 400
"""The lowest HTTP status of an error."""


@attrs.frozen
class OpenAIBatch(ExportSource):
    """Results of a batch: its output file and its error file, joined with the requests of its input file by ``custom_id``.

    Replies of chat completions, responses and completions have their text as output. A reply with an error is a failed row. A second reply to a
    ``custom_id`` is a row of its own, ``ID#2``. Both it and the requests without a reply are counted and named.

    :param requests: the input file of the batch. By default each input file in the folder of the results is used.
    """

    title = "results of an OpenAI batch"
    name = "openai_batch"

    requests: Path | None = attrs.field(default=None, kw_only=True, metadata={"later": True})

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of an output or error file."""
        records = beginning.objects
        is_result = records and all(
            "custom_id" in record and ({"response", "error"} & record.keys()) for record in records
        )
        return Detection(cls.title) if is_result else None

    def companions(self, files: InputFiles) -> _Requests:
        """Return the requests of the batch."""
        return _Requests(self._request_files(files), self._other_results(files))

    def rows(self, reading: SessionReading, companions: _Requests) -> Iterator[Row]:
        """Yield the results of a file."""
        for _, record in reading.objects():
            id_ = str(record.get("custom_id"))
            yield _row(id_, record, companions.body(id_), reading)

    def _request_files(self, files: InputFiles) -> list[Path]:
        """Return the input files of the batch, by default the files with requests in the folder of the results."""
        if self.requests is not None:
            return [self.requests]
        folder = files.root if files.root.is_dir() else files.root.parent
        if str(self.path) == "-" or not folder.is_dir():
            return []
        return [path for path in sorted(folder.iterdir()) if path.is_file() and _first_keys(path) >= _REQUEST]

    def _other_results(self, files: InputFiles) -> list[Path]:
        """Return the other files of results in the folder of a single file: the error file of an output file."""
        if files.root.is_dir() or str(self.path) == "-":
            return []
        neighbors = [path for path in sorted(files.root.parent.iterdir()) if path.is_file() and path != files.root]
        return [path for path in neighbors if {"custom_id", "response"} <= _first_keys(path)]


class _Requests:
    """The bodies of the requests in some files, by ``custom_id``, in a temporary file."""

    def __init__(self, paths: list[Path], others: list[Path]) -> None:
        self._database: sqlite3.Connection | None = None
        self.digest = ""
        self._strangers = 0
        if not paths:
            return
        digest = sha256()
        table = "CREATE TABLE requests(id TEXT PRIMARY KEY, body BLOB, is_answered INT DEFAULT 0, is_elsewhere INT DEFAULT 0) WITHOUT ROWID"
        self._database = temporary_database(self, table)
        self._database.execute("BEGIN")
        for path in paths:
            with InputFile.opened(path) as file:
                for _, record in file.objects():
                    if "custom_id" in record:
                        row = str(record["custom_id"]), orjson.dumps(record.get("body"))
                        digest.update(row[1])
                        self._database.execute("INSERT OR REPLACE INTO requests (id, body) VALUES (?, ?)", row)
        for path in others:
            with InputFile.opened(path) as file, suppress(DataError):  # a broken file is reported where it is read
                ids = ((str(record.get("custom_id")),) for _, record in file.objects())
                self._database.executemany("UPDATE requests SET is_elsewhere = 1 WHERE id = ?", ids)
        self._database.execute("COMMIT")
        self.digest = digest.hexdigest()

    def start(self) -> None:
        """Start a pass over the replies."""
        self._strangers = 0
        if self._database is not None:
            self._database.execute("UPDATE requests SET is_answered = is_elsewhere")

    def read_counts(self) -> tuple[dict[str, dict[str, int]], list[str]]:
        """Return the numbers of requests without a reply and of replies without a request, and notes that name the requests."""
        if self._database is None:
            return {}, []
        query = "SELECT id FROM requests WHERE is_answered = 0 ORDER BY id"
        ids = [id_ for (id_,) in self._database.execute(query)]
        notes = [f"{len(ids):,} request{'s' * (len(ids) != 1)} without a reply: {_named(ids)}"] if ids else []
        if self._strangers:
            notes.append(
                f"{self._strangers:,} repl{'ies' if self._strangers != 1 else 'y'} without a request in the input file"
            )
        counts = {"without_reply": len(ids), "replies_without_request": self._strangers}
        return {"requests": counts} if any(counts.values()) else {}, notes

    def body(self, id_: str) -> dict[str, Any]:
        """Return the body of a request, which is answered now; an empty one if it is unknown."""
        if self._database is None:
            return {}
        self._strangers += not self._database.execute(
            "UPDATE requests SET is_answered = 1 WHERE id = ?", (id_,)
        ).rowcount
        row = self._database.execute("SELECT body FROM requests WHERE id = ?", (id_,)).fetchone()
        return {} if row is None else mapping(orjson.loads(row[0]))


def _named(ids: Sequence[str]) -> str:
    return f"{', '.join(ids[:_MOST_NAMES])}{', …' * (len(ids) > _MOST_NAMES)}"


def _first_keys(path: Path) -> frozenset[str]:
    """Return the keys of the object on the first line of a file; none for a neighbor that cannot be read."""
    if path.suffix not in (".jsonl", ".json", ".ndjson", ".gz", ".txt"):
        return frozenset()
    try:
        with InputFile.opened(path) as file, file.binary() as stream:
            record = mapping(orjson.loads(stream.readline(MAX_LINE_BYTES)))
    except (DataError, EOFError, OSError, zlib.error, orjson.JSONDecodeError):
        return frozenset()
    return frozenset(record)


def _row(id_: str, record: Value, request: Value, reading: SessionReading) -> Row:
    response = mapping(record.get("response"))
    body = mapping(response.get("body"))
    status, error = response.get("status_code"), record.get("error") or body.get("error")
    failure = None
    if error or (isinstance(status, int) and status >= _FIRST_ERROR):
        failure = f"{message_of(error) if error else 'the request failed'}"
        failure += f" (status {status})" if isinstance(status, int) and status >= _FIRST_ERROR else ""
    elif not body:
        failure = "the result has no response"
    output, finish_reason = _output(body, reading)
    if failure is None and output is None and "choices" not in body:
        output = body  # of another endpoint, such as embeddings
    model = text(body.get("model"))
    context = {
        "model": model or text(request.get("model")),
        "usage": body.get("usage"),
        "status_code": status,
        "request_id": first(response, "request_id"),
        "tool_calls": _tool_calls(body) or None,
    }
    models = (model,) if model else ()
    return Row(id_, _input(request), output, None, context, finish_reason=finish_reason, failure=failure, models=models)


def _input(request: Value) -> object:
    """Return the input of a request: the text of the only message of the user, else all messages."""
    messages = first(request, "messages", "input", "prompt")
    users = [item for item in objects(messages) if item.get("role") == "user"]
    if len(objects(messages)) == 1 and len(users) == 1 and isinstance(users[0].get("content"), str):
        return users[0]["content"]
    return messages


def _output(body: Value, reading: SessionReading) -> tuple[object, str | None]:
    """Return the text of a reply and the reason of its end; None for a reply without a text."""
    choices = objects(body.get("choices"))
    if choices:
        if len(choices) > 1:
            reading.mark(f"{len(choices)} choices of a reply (the first is the output)")
        message, choice = mapping(choices[0].get("message")), choices[0]
        content = message.get("content")
        content = content if content is not None else message.get("refusal")
        if content is None and not message:
            content = choice.get("text")
        if content is None and message.get("tool_calls"):
            content = ""
        return _joined(content), text(choice.get("finish_reason"))
    items = objects(body.get("output"))
    contents = [part for item in items if item.get("type") == "message" for part in objects(item.get("content"))]
    texts = [part for part in (first(part, "text", "refusal") for part in contents) if isinstance(part, str)]
    reason = text(mapping(body.get("incomplete_details")).get("reason")) or text(body.get("status"))
    if texts or items:
        return "\n".join(texts), None if reason == "completed" else reason
    return body.get("output_text"), None


def _joined(content: object) -> object:
    if isinstance(content, list):
        texts = [item.get("text") for item in objects(content)]
        return "\n".join(part for part in texts if isinstance(part, str))
    return content


def _tool_calls(body: Value) -> Sequence[Value]:
    choices = objects(body.get("choices"))
    calls = objects(mapping(choices[0].get("message")).get("tool_calls")) if choices else []
    return calls or [item for item in objects(body.get("output")) if str(item.get("type")).endswith("_call")]
