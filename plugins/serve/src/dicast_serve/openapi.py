"""The OpenAPI document, made of the table of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import attrs

from .labels import BODY
from .parameters import Parameter
from .routes import AFTER, BRIEF, LEDGER, ROUTES, Route

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
    "400": "A parameter, the Host or the body is wrong; all that is wrong is named.",
    "401": "The token is missing or another one.",
    "403": "The request comes from another origin's page, or the token does not allow it.",
    "404": "The ledger has no such subject, or no such run.",
    "409": "The ledger as it is has no answer: no such judge or kind, not two raters, a window that ends before it begins, a person by a judge's name.",
    "503": "The ledger cannot be read now.",
}


_NEWS = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {
            "type": "string",
            "description": "How far in the ledger whoever has this has come; after and Last-Event-ID take it.",
        },
        "event": {"enum": ["head", "verdict", "failure", "round"]},
        "data": {
            "type": "string",
            "description": "JSON: a row as in /runs/{run_id}/rows; {seq} with how far the ledger goes; or {name}, which the header "
            "Dicast-Round repeats: all who ask in one round are given the same answers, as the ledger is when the first asks.",
        },
        "retry": {"type": "integer"},
    },
}
"""One server-sent event."""


def document(ledgers: Sequence[str]) -> dict[str, Any]:
    """All of it, where *ledgers* are served."""
    ledger = attrs.evolve(LEDGER, schema={"type": "string", "enum": list(ledgers)})
    paths = {route.path: {"get": _operation(route, ledger)} for route in ROUTES}
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
            "schemas": {"Error": _ERROR, "Label": BODY},
        },
        "paths": {**paths, **_others(ledger)},
    }


def _operation(route: Route, ledger: Parameter) -> dict[str, Any]:
    return {
        "summary": route.summary,
        "operationId": route.path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        "parameters": [_parameter(one) for one in (*route.parameters, ledger)],
        "responses": _responses(_object(route.members), "304", "404", "409"),
    }


def _others(ledger: Parameter) -> dict[str, Any]:
    events = {
        "summary": "Verdicts and failures as they come, as server-sent events, and how far the ledger goes.",
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
            **{code: said for code, said in _responses(None, "404", "409").items() if code != "200"},
            "201": _response("The verdict that was recorded.", _object(("run_id", "verdict"))),
        },
    }
    ledgers = {
        "summary": "The ledgers that are served, each with its head.",
        "operationId": "ledgers",
        "parameters": [],
        "responses": _responses(_object(("data",))),
    }
    session = {
        "summary": "What the token of the request allows.",
        "operationId": "session",
        "parameters": [],
        "responses": _responses(_object(("may_label",))),
    }
    reads = {"/events": events, "/ledgers": ledgers, "/session": session}
    return {"/labels": {"post": label}, **{path: {"get": one} for path, one in reads.items()}}


def _parameter(one: Parameter) -> dict[str, Any]:
    schema = {"type": "array", "items": one.schema} if one.many else one.schema
    required = one.required or one.place == "path"
    return {"name": one.name, "in": one.place, "description": one.help, "required": required, "schema": schema}


def _responses(schema: Mapping[str, Any] | None, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = {"200": _response("The answer.", schema)}
    if schema is None:
        found["200"]["content"] = {"text/event-stream": {"schema": _NEWS}}
    if "304" in more:
        found["304"] = {"description": "The answer is still the one whose ETag was given."}
    refusals = [code for code in _REFUSALS if code not in ("404", "409") or code in more]
    return {**found, **{code: _response(_REFUSALS[code], _reference("Error")) for code in refusals}}


def _response(description: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {"description": description, **content}


def _object(members: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": {name: {} for name in members}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
