"""Scores of a run as one file, for comparisons on another machine. The file contains a digest of itself."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from ...toolkit.files import MAX_DATA_BYTES, open_file
from ...toolkit.json_values import numbers_in
from ..values import ContentDigests, Head, Record, Results
from ..values.errors import DataError, Problem
from ..values.passes import PassRule
from .option_changes import digest_texts
from .reader import has_weights

FORMAT = "dicast.baseline/1"
"""Value of the member ``format`` of such a file."""

PREFIX = b'{\n"format": "dicast.baseline/'
"""First bytes of such a file."""

_MEMBERS = {"name": str, "run_id": str, "document": dict, "fingerprints": dict, "models": dict, "rows": list}
_ROW_MEMBERS = {"subject_kind": str, "subject_id": str, "metrics": dict}
_OPTIONAL = ("scored_by", "combined", "combined_passes", "held_back")
"""Members of a record and of its row: the judge of the score, of all metrics together the score and whether it passes, and the metrics that did not run."""

_START = 4096


def portable(run: Results, document: Mapping[str, Any], head: Head) -> bytes:
    """Return the file for *run*: its document, fingerprints, options, each subject's numbers, and the ledger's *head*.

    It has digests and no text of the rows, and no messages of failures, which may quote the text. Each subject is one line. ``digest`` is the hex
    SHA-256 of the canonical JSON of all other members.
    """
    failed = [
        {k: v for k, v in failure.items() if k != "error_message"} for failure in document.get("failed_subjects", ())
    ]
    content = {
        "format": FORMAT,
        "name": run.name,
        "run_id": run.run_id,
        "fingerprints": dict(run.fingerprints),
        **(
            {"options": {section: digest_texts(options) for section, options in run.options.items()}}
            if run.options
            else {}
        ),
        "models": {label: sorted(models) for label, models in run.models.items()},
        "pass_at": dict(run.pass_at),
        **({} if run.rule is None else {"rule": run.rule.stated()}),
        "document": {**document, "failed_subjects": failed},
        "ledger": {"head": {"seq": head.seq, "digest": head.digest}},
    }
    contents = dict(run.contents())
    rows = [
        _row(subject_id, record, contents.get((record["subject_kind"], subject_id)))
        for subject_id, record in run.records()
    ]
    content["digest"] = _digest({**content, "rows": rows})
    members = [b"%s: %s" % (orjson.dumps(key), orjson.dumps(value)) for key, value in content.items()]
    lines = b",\n".join(orjson.dumps(row) for row in rows)
    return b"{\n%s,\n%s: [\n%s\n]\n}\n" % (b",\n".join(members), orjson.dumps("rows"), lines)


def read_portable(path: Path) -> Results | None:
    """Return the run in the file at *path*; None if the file was not written by :func:`portable`.

    :raises DataError: when the file was changed since, or has another version.
    """
    content = _loaded(path)
    if content is None:
        return None
    file = str(path)
    if content["format"] != FORMAT:
        problem = f"the file has the format {content['format']!r}, but this version reads {FORMAT!r}; save the baseline again with this version"
        raise DataError(Problem(problem, file=file))
    recorded = content.pop("digest", None)
    if recorded != (computed := _digest(content)):
        problem_ = f"changed after it was saved: its digest is {recorded!r}, but its content has {computed!r}"
        raise DataError(
            Problem(f"this baseline was {problem_}; save it again with dicast baseline save NAME --file", file=file)
        )
    if any(not isinstance(content.get(name), type_) for name, type_ in _MEMBERS.items()) or not all(
        isinstance(row, dict) and all(isinstance(row.get(name), type_) for name, type_ in _ROW_MEMBERS.items())
        for row in content["rows"]
    ):
        raise DataError(Problem(f"a baseline has the members {', '.join(_MEMBERS)}; save it again", file=file))

    def records() -> Iterator[tuple[str, Record]]:
        for row in content["rows"]:
            session = {"session_id": row["session_id"]} if "session_id" in row else {}
            row_ = {"id": row["subject_id"], **session}
            members = {name: row[name] for name in ("subject_kind", "metrics", *_OPTIONAL) if name in row}
            yield row["subject_id"], {"row": row_, **members}

    pass_at = content.get("pass_at") or {}  # missing in files of older versions
    label = (content["document"].get("score") or {}).get("label")
    stated = content.get("rule") or {"pass_at": pass_at}  # older files have the pass lines alone
    rule = attrs.evolve(PassRule.of(stated), labels=tuple(content["document"].get("labels") or ()), label=label)
    by_label = {**(content["document"].get("labels") or {}), **(content["document"].get("metrics") or {})}
    raw = tuple(name for name, figures in by_label.items() if figures.get("scale") == "raw")
    members = (content["run_id"], content["name"], records, content["fingerprints"], content["models"], pass_at)
    document = content["document"]
    adapted = document.get("adapted") or {}
    return Results(
        *members,
        rule=rule,
        raw=raw,
        adapted=adapted,
        weighted=lambda: has_weights(document),
        contents=lambda: _contents(content["rows"]),
        gated=tuple(
            dict.fromkeys(clause["on"] for clause in (document.get("gate") or {}).get("clauses", ()) if clause["on"])
        ),
        stopped=(document.get("stopped") or {}).get("reason"),
        options=content.get("options") or {},  # missing in files of older versions
    )


def _contents(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], ContentDigests]]:
    """Yield the digests of the subjects in *rows*; rows of older files have none."""
    for row in rows:
        if "contents" in row:
            yield (row["subject_kind"], row["subject_id"]), ContentDigests(**row["contents"])


def _loaded(path: Path) -> dict[str, Any] | None:
    """Return the object in the file if it is a baseline; a long file of records is not read completely to find out."""
    try:
        with open_file(path) as file:
            first = file.read(_START).removeprefix(BOM_UTF8)
            if not first.lstrip().startswith(b"{") or _is_record(first.split(b"\n", 1)[0]):
                return None
            text = first + file.read(MAX_DATA_BYTES)
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if first.startswith(PREFIX):
            cut = "this baseline is cut or damaged; save it again with dicast baseline save NAME --file"
            raise DataError(Problem(cut, file=str(path))) from error
        return None
    except OSError:  # reading the file as records reports the error
        return None
    return content if isinstance(content, dict) and isinstance(content.get("format"), str) else None


def _is_record(line: bytes) -> bool:
    """Return True if *line* is a complete object, as each line of a file of records is."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(content, dict) and "format" not in content


def _row(subject_id: str, record: Record, contents: ContentDigests | None) -> dict[str, object]:
    session = record.get("row", {}).get("session_id")
    optional = {"session_id": session} if session else {}
    optional |= {name: record[name] for name in _OPTIONAL if name in record}
    numbers = numbers_in(record["metrics"])
    digests = {} if contents is None else {"contents": attrs.asdict(contents)}
    return {"subject_kind": record["subject_kind"], "subject_id": subject_id, **optional, "metrics": numbers, **digests}


def _digest(content: Mapping[str, object]) -> str:
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
