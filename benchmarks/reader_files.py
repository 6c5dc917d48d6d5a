"""Files in the formats of the readers, in the shapes that the tools write: ``python reader_files.py FORMAT FOLDER MEGABYTES SESSIONS TURNS``.

It prints the bytes, the sessions and the path that the source reads as JSON. Writing ends at the size or at the number of sessions.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias

import reader_exports as exports
import reader_sessions as sessions
from reader_texts import Texts

Session: TypeAlias = Callable[[Texts, int, int], Any]
"""A function of the texts, the number of the session and the number of its turns. It returns a record, or the records of a file."""

Sizes: TypeAlias = Generator[int, None, None]
Writer: TypeAlias = Callable[[Path, Texts, int], Sizes]
"""A function of the folder, the texts and the number of turns. It yields the size of each session that it writes."""


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _lines(session: Session, name: str = "data.jsonl") -> Writer:
    """Return a writer of a file with a record per line."""

    def write(folder: Path, texts: Texts, turns: int) -> Sizes:
        with (folder / name).open("w", encoding="utf-8") as file:
            for number in itertools.count():
                yield file.write(_dumped(session(texts, number, turns)))

    return write


def _folder(session: Session, suffix: str, indent: int | None = None) -> Writer:
    """Return a writer of a file per session: JSON lines with the suffix ``.jsonl``, else one document."""

    def write(folder: Path, texts: Texts, turns: int) -> Sizes:
        for number in itertools.count():
            value = session(texts, number, turns)
            text = "".join(map(_dumped, value)) if suffix == ".jsonl" else json.dumps(value, indent=indent)
            path = folder / f"part-{number // 500:03}" / f"session-{number:06}{suffix}"
            path.parent.mkdir(exist_ok=True)
            yield path.write_text(text, encoding="utf-8")

    return write


def _document(session: Session, head: str, tail: str = "]}", name: str = "data.json") -> Writer:
    """Return a writer of one document, whose list has an item per session."""

    def write(folder: Path, texts: Texts, turns: int) -> Sizes:
        with (folder / name).open("w", encoding="utf-8") as file:
            file.write(head)
            try:
                for number in itertools.count():
                    item = json.dumps(session(texts, number, turns), indent=2)
                    yield file.write(f"{',' if number else ''}\n{item}")
            finally:
                file.write(f"\n{tail}")

    return write


def _both(first: Writer, second: Writer) -> Writer:
    """Return a writer of two files, whose records belong together."""

    def write(folder: Path, texts: Texts, turns: int) -> Sizes:
        with closing(first(folder, texts, turns)) as with_one, closing(second(folder, texts, turns)) as with_two:
            for one, two in zip(with_one, with_two, strict=True):
                yield one + two

    return write


def _tables(folder: Path, texts: Texts, turns: int) -> Sizes:
    """Write the three tables of an export of Langfuse."""
    names = ("traces", "observations", "scores")
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{name}.jsonl").open("w", encoding="utf-8")) for name in names]
        for number in itertools.count():
            tables = exports.langfuse_trace(texts, number, turns)
            yield sum(file.write("".join(map(_dumped, rows))) for file, rows in zip(files, tables, strict=True))


def _protobuf(folder: Path, texts: Texts, turns: int) -> Sizes:
    """Write a file of the Collector: requests in protobuf, each with its length before it."""
    from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with (folder / "data.binpb").open("wb") as file:
        for number in itertools.count():
            request = sessions.otlp_request(texts, number, turns, is_base64=True)
            data = ParseDict(request, ExportTraceServiceRequest()).SerializeToString()
            yield file.write(len(data).to_bytes(4, "big") + data)


_INSPECT = (
    '{"version": 2, "status": "success", "eval": {"task": "bugs", "model": "openai/gpt"}, "plan": {}, "samples": ['
)
_HELM = '{"adapter_spec": {"method": "generation", "model": "org/model"}, "request_states": ['
_PROMPTFOO = '{"evalId": "e", "results": {"version": 3, "stats": {}, "results": ['

FORMATS: dict[str, tuple[str, str, Writer]] = {
    "messages": ("dicast_traces:Messages", "data.jsonl", _lines(sessions.chat_messages)),
    "claude_code": ("dicast_transcripts:ClaudeCode", "", _folder(sessions.claude_code, ".jsonl")),
    "codex": ("dicast_transcripts:Codex", "", _folder(sessions.codex, ".jsonl")),
    "gemini_cli": ("dicast_transcripts:GeminiCli", "", _folder(sessions.gemini_chat, ".json", 2)),
    "copilot": ("dicast_transcripts:Copilot", "", _folder(sessions.copilot, ".jsonl")),
    "opencode": ("dicast_transcripts:OpenCode", "", _folder(sessions.opencode_export, ".json", 2)),
    "atif": ("dicast_transcripts:Atif", "", _folder(sessions.atif_trajectory, ".json", 2)),
    "swe_agent": ("dicast_transcripts:SweAgent", "", _folder(sessions.swe_agent, ".traj", 2)),
    "openhands": ("dicast_transcripts:OpenHands", "", _folder(sessions.openhands_events, ".json", 2)),
    "adk": ("dicast_transcripts:Adk", "data.json", _document(sessions.adk_case, '{"eval_set_id": "a", "eval_cases": [')),
    "otlp": ("dicast_otel:Spans", "data.jsonl", _lines(sessions.otlp_request)),
    "otlp_protobuf": ("dicast_otel:Spans", "data.binpb", _protobuf),
    "tempo": ("dicast_otel:Spans", "", _folder(sessions.tempo_batches, ".json")),
    "jaeger": ("dicast_otel:Spans", "data.json", _document(sessions.jaeger_trace, '{"data": [')),
    "inspect": ("dicast_inspect:Log", "data.json", _document(exports.inspect_sample, _INSPECT)),
    "promptfoo": ("dicast_exports:Promptfoo", "data.json", _document(exports.promptfoo_result, _PROMPTFOO, "]}}")),
    "lm_eval": ("dicast_exports:LmEval", "data.jsonl", _lines(exports.lm_eval_sample)),
    "openai_batch": ("dicast_exports:OpenAIBatch", "data.jsonl", _both(_lines(exports.batch_line), _lines(exports.batch_request, "requests.jsonl"))),
    "langfuse": ("dicast_exports:Langfuse", "", _tables),
    "langsmith": ("dicast_exports:LangSmith", "data.jsonl", _lines(exports.langsmith_run)),
    "mlflow": ("dicast_exports:MLflow", "data.jsonl", _lines(exports.mlflow_trace)),
    "helm": ("dicast_exports:Helm", "data.json", _both(_document(exports.helm_state, _HELM), _document(exports.helm_statistics, "[", "]", "per_instance_stats.json"))),
}  # fmt: skip
"""By name: the source, the path that it reads below the folder, and the writer of its files."""


def write(name: str, folder: Path, megabytes: float, most: int, turns: int) -> dict[str, Any]:
    """Write the files of the format *name* into *folder*: *megabytes*, or *most* sessions. Return the bytes, the sessions and the path."""
    _, path, writer = FORMATS[name]
    size = count = 0
    with closing(writer(folder, Texts(), turns)) as sizes:
        for size_of_session in sizes:
            size, count = size + size_of_session, count + 1
            if size >= megabytes * 1e6 or count >= most:
                break
    total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"bytes": total, "sessions": count, "path": str(folder / path)}


if __name__ == "__main__":
    format_, folder, megabytes, most, turns = sys.argv[1:]
    print(json.dumps(write(format_, Path(folder), float(megabytes), int(most), int(turns))))
