"""The views ``events`` and ``verdicts``: SQL that reads the blocks without dicast.

The function ``sqlar_uncompress(body, size)`` is part of the ``sqlite3`` shell. Other programs define it with zlib. The SQL has no ``->``, because SQLite
before 3.38 would refuse the whole file.
"""

from __future__ import annotations

from dicast.toolkit.ledger_lines.separation import IDS

from .texts import KEY_BYTES


def _value(text: str, path: str) -> str:
    """Return SQL for the value at *path* of the JSON *text*."""
    return f"json_extract({text}, {path})"


def _json(text: str, path: str) -> str:
    """Return SQL for the JSON text at *path*, byte by byte. The second path has no value, so the list of both is ``[TEXT,null]``."""
    return f"(SELECT substr(pair, 2, length(pair) - 7) FROM (SELECT json_extract({text}, {path}, '$[99999]') AS pair))"


def _content(digest: str) -> str:
    """Return SQL for the JSON text of the content with this digest."""
    return f"""(SELECT text FROM all_texts WHERE key IN (substr({digest}, 1, {2 * KEY_BYTES}), {digest}) ORDER BY length(key) DESC LIMIT 1)"""


def _blank(payload: str) -> str:
    """Return SQL for the blank at the place ``place.value`` of a payload."""
    return f"substr({payload}, place.value + 1, CASE substr({payload}, place.value + 1, 1) WHEN 'n' THEN 4 ELSE 2 END)"


def _restored(payload: str, digest: str, places: str, type_: str) -> str:
    """Return SQL for a payload with its texts at *places*, the JSON list of their places. Without the texts a record has a member ``digest``."""
    blank = _blank("payload")
    next_place = "coalesce(json_extract(places, '$[' || (place.key + 1) || ']'), length(payload))"
    text = _json("texts", f"'$[' || (place.key + {IDS}) || ']'")
    rest = f"substr(payload, place.value + length({blank}) + 1, {next_place} - place.value - length({blank}))"
    before = "substr(payload, 1, json_extract(places, '$[0]'))"
    whole = f"{before} || (SELECT group_concat({text} || {rest}, '') FROM json_each(places) AS place)"
    erased = f"""CASE WHEN {type_} IN ('record.completed', 'record.failed')
        THEN '{{"digest":"' || {digest} || '",' || substr(payload, 2) ELSE payload END"""
    return f"""(SELECT CASE WHEN texts IS NULL THEN {erased} ELSE {whole} END
        FROM (SELECT {payload} AS payload, {places} AS places, {_content(digest)} AS texts))"""


def _columns(*paths: int) -> str:
    return ", ".join(_value("lines.line", f"'$[{path}]'") for path in paths)


_KIND, _MAKER = _value("item.value", "'$[0]'"), _value("item.value", "'$[1]'")
_LINES = f"""SELECT blocks.first AS block, item.key AS place, item.value AS line, {_KIND} AS kind, CASE {_KIND} WHEN 0 THEN 1
    WHEN 1 THEN 0 WHEN 3 THEN 0 ELSE (SELECT json_array_length(makers.line, '$[3]') FROM makers WHERE makers.name = {_MAKER}) END AS judged,
    CASE {_KIND} WHEN 4 THEN json_array_length(item.value, '$[#-1]') ELSE 0 END AS traces
    FROM blocks, json_each(CAST(sqlar_uncompress(blocks.body, blocks.size) AS TEXT)) AS item"""
_NUMBERED = f"""SELECT line, kind, traces,
    block + sum(judged + traces) OVER (PARTITION BY block ORDER BY place) - judged - traces AS seq FROM ({_LINES})"""

_NAMES = "seq, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload"
_PAYLOAD, _BEFORE = _value("lines.line", "'$[10]'"), _value("lines.line", "'$[12]'")
_DIGEST, _TYPE = _value("lines.line", "'$[11]'"), _value("lines.line", "'$[2]'")
_OF_EVENTS = f"""SELECT seq, {_columns(*range(1, 10))}, CASE WHEN json_array_length(lines.line) = 11 THEN {_PAYLOAD}
    WHEN json_type(lines.line, '$[12]') = 'array' THEN {_restored(_PAYLOAD, _DIGEST, _BEFORE, _TYPE)}
    ELSE substr({_PAYLOAD}, 1, {_BEFORE}) || coalesce({_content(_DIGEST)}, 'null')
        || substr({_PAYLOAD}, {_BEFORE} + 5) END
    FROM lines WHERE kind = 0"""

_ID, _TIME = (_value("lines.line", f"'$[' || ({place} + 2 * part.key) || ']'") for place in (5, 6))
_AT = _json("lines.line", "'$[' || piece.value || ']'")
_CONTENT_AT = _content(_value("lines.line", "'$[' || (-piece.value) || ']'"))
_PIECES = f"""(SELECT group_concat(CASE WHEN piece.type = 'text' THEN piece.value WHEN piece.value > 0 THEN {_AT}
    ELSE coalesce({_CONTENT_AT}, 'null') END, '') FROM json_each(part.value, '$[2]') AS piece)"""
_OF_JUDGED = f"""SELECT seq + part.key + CASE part.key WHEN 0 THEN 0 ELSE traces END, {_ID}, {_value("part.value", "'$[0]'")},
    {_TIME}, {_value("makers.line", "'$[1]'")}, {_columns(3, 4)}, {_value("makers.line", "'$[2]'")}, {_columns(2)},
    {_value("part.value", "'$[1]'")}, {_PIECES}
    FROM lines JOIN makers ON makers.name = {_value("lines.line", "'$[1]'")}, json_each(makers.line, '$[3]') AS part
    WHERE kind IN (2, 4)"""

_TRACE = [_value("trace.value", f"'$[{place}]'") for place in range(7)]
_TRACE_ID, _TRACE_TYPE, _TRACE_TIME, _TRACE_TURN, _TRACE_PAYLOAD, _TRACE_DIGEST, _TRACE_PLACES = _TRACE
_BEFORE_ID = (
    f"""CASE length({_TRACE_ID}) WHEN 4 THEN substr({_value("lines.line", "'$[#-1][0][0]'")}, 1, 22) ELSE '' END"""
)
_OF_TRACES = f"""SELECT seq + 1 + trace.key, {_BEFORE_ID} || {_TRACE_ID}, {_TRACE_TYPE}, {_TRACE_TIME},
    {_value("makers.line", "'$[1]'")}, {_columns(3)}, CASE {_TRACE_TURN} WHEN 0 THEN {_columns(4)} ELSE {_TRACE_TURN} END,
    NULL, NULL, 'user_controlled', CASE json_array_length(trace.value) WHEN 5 THEN {_TRACE_PAYLOAD}
    ELSE {_restored(_TRACE_PAYLOAD, _TRACE_DIGEST, _TRACE_PLACES, _TRACE_TYPE)} END
    FROM lines JOIN makers ON makers.name = {_value("lines.line", "'$[1]'")}, json_each(lines.line, '$[#-1]') AS trace
    WHERE kind = 4"""

_TEXT = _json("unpacked.list", "'$[' || item.key || ']'")
_STORED = f"""SELECT unpacked.id * 1024 + item.key AS place,
    CASE WHEN item.type IN ('object', 'array') THEN item.value ELSE {_TEXT} END AS text
    FROM (SELECT id, CAST(sqlar_uncompress(body, size) AS TEXT) AS list FROM texts) AS unpacked, json_each(unpacked.list) AS item"""
_TEXTS = f"SELECT lower(hex(contents.key)) AS key, stored.text FROM ({_STORED}) AS stored JOIN contents ON contents.place = stored.place"

EVENTS_VIEW = f"""CREATE VIEW events ({_NAMES}, prev, digest) AS WITH lines AS ({_NUMBERED}), all_texts AS ({_TEXTS})
    SELECT *, NULL, NULL FROM ({_OF_EVENTS} UNION ALL {_OF_JUDGED} UNION ALL {_OF_TRACES})"""

_FIELDS = (
    *("eval_id", "judge", "score", "raw", "confidence", "tier", "basis", "judge_kind", "judge_model", "rubric_id"),
    *("rubric_version", "fingerprint", "judge_cost_usd", "judge_latency_ms"),
)
_OF_PAYLOAD = ", ".join(_value("payload", f"'$.{field}'") for field in _FIELDS)
VERDICTS_VIEW = f"""CREATE VIEW verdicts (seq, time, run_id, session_id, subject_kind, subject_id, {", ".join(_FIELDS)}) AS
    SELECT seq, time, run_id, session_id, subject_kind, subject_id, {_OF_PAYLOAD} FROM events WHERE type = 'eval.completed'"""

VIEWS = (EVENTS_VIEW, VERDICTS_VIEW)
