"""The OpenAPI document, generated from the table of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import attrs

from .guide import Guide
from .label_bodies import BODY, RETRACTION
from .label_routes import routes_with
from .parameters import Parameter
from .routes import AFTER, BRIEF, LEDGER, Route

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "errors"],
            "properties": {"message": {"type": "string"}, "errors": {"type": "array", "items": {"type": "object"}}},
        }
    },
}
_REFUSALS = {
    "400": "A parameter, the Host or the body is wrong; every problem is listed.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from another origin's page, or the token does not allow it.",
    "404": "The ledger has no such subject, or no such run.",
    "409": "The current ledger has no answer: no such judge or kind, not two raters, a window that ends before it starts, a person with a judge's name, or another label of the person than expected.",
    "503": "The ledger cannot be read now.",
}


_NEWS = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {
            "type": "string",
            "description": "The last row of the ledger that the client has seen; the value for after and Last-Event-ID.",
        },
        "event": {"enum": ["head", "verdict", "failure", "round"]},
        "data": {
            "type": "string",
            "description": "JSON: a row as in /runs/{run_id}/rows; {seq} with the newest row of the ledger; or {name}, which the header "
            "Dicast-Round repeats: all requests of a round get the same answers, from the ledger at the time of the first request.",
        },
        "retry": {"type": "integer"},
    },
}
"""One server-sent event."""


def document(ledgers: Sequence[str]) -> dict[str, Any]:
    """Return the whole document for these *ledgers*."""
    ledger = attrs.evolve(LEDGER, schema={"type": "string", "enum": list(ledgers)})
    paths = {route.path: {"get": _operation(route, ledger)} for route in routes_with(Guide())}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dicast serve",
            "version": version("dicast-serve"),
            "description": "Analytics over ledgers of verdicts. Numbers have six decimals, money is text.",
        },
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR, "Label": BODY, "Retraction": RETRACTION},
        },
        "paths": {**paths, **_other_paths(ledger)},
    }


def _operation(route: Route, ledger: Parameter) -> dict[str, Any]:
    return {
        "summary": route.summary,
        "operationId": route.path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        "parameters": [_parameter(parameter) for parameter in (*route.parameters, ledger)],
        "responses": _responses(_object(route.members), "304", "404", "409"),
    }


def _other_paths(ledger: Parameter) -> dict[str, Any]:
    events = {
        "summary": "New verdicts and failures as server-sent events, with the newest row of the ledger.",
        "operationId": "events",
        "parameters": [_parameter(AFTER), _parameter(BRIEF), _parameter(ledger)],
        "responses": _responses(None),
    }
    label = {
        "summary": "A person's verdict on a subject; needs the labelling token.",
        "operationId": "label",
        "parameters": [_parameter(ledger)],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _reference("Label")}}},
        "responses": {
            **{code: response for code, response in _responses(None, "404", "409").items() if code != "200"},
            "201": _response("The recorded verdict.", _object(("run_id", "verdict"))),
        },
    }
    retraction = {
        "summary": "Retraction of a label, which stays in the ledger and counts no more; needs the labelling token.",
        "operationId": "retract_label",
        "parameters": [_parameter(ledger)],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _reference("Retraction")}}},
        "responses": {
            **{code: response for code, response in _responses(None, "404", "409").items() if code != "200"},
            "201": _response("The run that recorded the retraction.", _object(("run_id",))),
        },
    }
    ledgers = {
        "summary": "The served ledgers, each with its head.",
        "operationId": "ledgers",
        "parameters": [],
        "responses": _responses(_object(("data",))),
    }
    session = {
        "summary": "The permissions of the request's token.",
        "operationId": "session",
        "parameters": [],
        "responses": _responses(_object(("may_label",))),
    }
    reads = {"/events": events, "/ledgers": ledgers, "/session": session}
    writes = {"/labels": {"post": label}, "/labels/retractions": {"post": retraction}}
    return {**writes, **{path: {"get": operation} for path, operation in reads.items()}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema = {"type": "array", "items": parameter.schema} if parameter.is_repeatable else parameter.schema
    required = parameter.required or parameter.place == "path"
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.help,
        "required": required,
        "schema": schema,
    }


def _responses(schema: Mapping[str, Any] | None, *codes: str) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _response("The answer.", schema)}
    if schema is None:
        responses["200"]["content"] = {"text/event-stream": {"schema": _NEWS}}
    if "304" in codes:
        responses["304"] = {"description": "The client has the current answer: its ETag matches."}
    refusals = [code for code in _REFUSALS if code not in ("404", "409") or code in codes]
    return {**responses, **{code: _response(_REFUSALS[code], _reference("Error")) for code in refusals}}


def _response(description: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {"description": description, **content}


def _object(members: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": {name: {} for name in members}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
