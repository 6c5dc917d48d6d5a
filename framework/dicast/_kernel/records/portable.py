"""A run's scores as one file, which another machine compares its runs with. It carries a digest over itself."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from ...toolkit.files import MAX_DATA_BYTES, open_file
from ...toolkit.json_values import numbers_in
from ..values import Head, Record, Results
from ..values.errors import DataError, Problem
from ..values.passes import PassRule

FORMAT = "dicast.baseline/1"
"""What the member ``format`` of such a file says."""

BEGINS = b'{\n"format": "dicast.baseline/'
"""How such a file begins."""

_MEMBERS = {"name": str, "run_id": str, "document": dict, "fingerprints": dict, "models": dict, "rows": list}
_OF_A_ROW = {"subject_kind": str, "subject_id": str, "metrics": dict}
_START = 4096


def portable(run: Results, document: Mapping[str, Any], head: Head) -> bytes:
    """The file for *run*: its document, fingerprints, each subject's numbers, and the ledger's *head*; without any text of its rows, nor messages of failures, which may quote them.

    A line a subject. ``digest`` is the hex SHA-256 of the canonical JSON of all other members.
    """
    failed = [{k: v for k, v in one.items() if k != "error_message"} for one in document.get("failed_subjects", ())]
    told = {
        "format": FORMAT,
        "name": run.name,
        "run_id": run.run_id,
        "fingerprints": dict(run.fingerprints),
        "models": {label: sorted(models) for label, models in run.models.items()},
        "pass_at": dict(run.pass_at),
        **({} if run.rule is None else {"rule": run.rule.stated()}),
        "document": {**document, "failed_subjects": failed},
        "ledger": {"head": {"seq": head.seq, "digest": head.digest}},
    }
    rows = [_row(subject_id, record) for subject_id, record in run.records()]
    told["digest"] = _digest({**told, "rows": rows})
    members = [b"%s: %s" % (orjson.dumps(key), orjson.dumps(value)) for key, value in told.items()]
    lines = b",\n".join(orjson.dumps(row) for row in rows)
    return b"{\n%s,\n%s: [\n%s\n]\n}\n" % (b",\n".join(members), orjson.dumps("rows"), lines)


def read_portable(path: Path) -> Results | None:
    """The run that the file at *path* holds; None where it is not written by :func:`portable`.

    :raises DataError: when it is, and was changed since, or is of another version.
    """
    found = _loaded(path)
    if found is None:
        return None
    file = str(path)
    if found["format"] != FORMAT:
        newer = f"it has the format {found['format']!r}, and this version reads {FORMAT!r}; save it anew with this one"
        raise DataError(Problem(newer, file=file))
    said = found.pop("digest", None)
    if said != (own := _digest(found)):
        changed = f"changed after it was saved: its digest is {said!r}, that of its content is {own!r}"
        raise DataError(
            Problem(f"this baseline was {changed}; save it anew with dicast baseline save NAME --file", file=file)
        )
    if any(not isinstance(found.get(name), type_) for name, type_ in _MEMBERS.items()) or not all(
        isinstance(row, dict) and all(isinstance(row.get(name), type_) for name, type_ in _OF_A_ROW.items())
        for row in found["rows"]
    ):
        raise DataError(Problem(f"a baseline has the members {', '.join(_MEMBERS)}; save it anew", file=file))

    def records() -> Iterator[tuple[str, Record]]:
        for row in found["rows"]:
            session = {"session_id": row["session_id"]} if "session_id" in row else {}
            about = {"id": row["subject_id"], **session}
            kept = {name: row[name] for name in ("subject_kind", "scored_by", "metrics") if name in row}
            yield row["subject_id"], {"row": about, **kept}

    pass_at = found.get("pass_at") or {}  # which earlier versions did not write
    label = (found["document"].get("score") or {}).get("label")
    stated = found.get("rule") or {"pass_at": pass_at}  # older files have the lines alone
    rule = attrs.evolve(PassRule.of(stated), labels=tuple(found["document"].get("labels") or ()), label=label)
    by_label = {**(found["document"].get("labels") or {}), **(found["document"].get("metrics") or {})}
    raw = tuple(name for name, figures in by_label.items() if figures.get("scale") == "raw")
    members = (found["run_id"], found["name"], records, found["fingerprints"], found["models"], pass_at)
    return Results(*members, rule=rule, raw=raw, adapted=found["document"].get("adapted") or {})


def _loaded(path: Path) -> dict[str, Any] | None:
    """The file's object where it is one of a baseline; a long file of records is not read whole to find out."""
    try:
        with open_file(path) as file:
            first = file.read(_START).removeprefix(BOM_UTF8)
            if not first.lstrip().startswith(b"{") or _is_record(first.split(b"\n", 1)[0]):
                return None
            found = orjson.loads(first + file.read(MAX_DATA_BYTES))
    except (OSError, orjson.JSONDecodeError):  # whoever reads it as records says what is wrong
        return None
    return found if isinstance(found, dict) and isinstance(found.get("format"), str) else None


def _is_record(line: bytes) -> bool:
    """Whether *line* is an object for itself, as each line of a file of records is."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and "format" not in found


def _row(subject_id: str, record: Record) -> dict[str, object]:
    session = record.get("row", {}).get("session_id")
    beside = {name: value for name, value in (("session_id", session), ("scored_by", record.get("scored_by"))) if value}
    numbers = numbers_in(record["metrics"])
    return {"subject_kind": record["subject_kind"], "subject_id": subject_id, **beside, "metrics": numbers}


def _digest(told: Mapping[str, object]) -> str:
    return sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()
