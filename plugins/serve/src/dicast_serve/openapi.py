"""The OpenAPI document, made of the table of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from .labels import BODY
from .parameters import Parameter
from .routes import LEDGER, ROUTES, Route

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
    "404": "The ledger has no such thing.",
    "503": "The ledger cannot be read now.",
}


def document() -> dict[str, Any]:
    """All of it."""
    paths = {route.path: {"get": _operation(route)} for route in ROUTES}
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
        "paths": {**paths, **_others()},
    }


def _operation(route: Route) -> dict[str, Any]:
    return {
        "summary": route.summary,
        "operationId": route.path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        "parameters": [_parameter(one) for one in (*route.parameters, LEDGER)],
        "responses": _responses(_object(route.members), "304", "404"),
    }


def _others() -> dict[str, Any]:
    events = {
        "summary": "Verdicts and failures as they come, as server-sent events.",
        "operationId": "events",
        "parameters": [_parameter(LEDGER)],
        "responses": _responses(None, "404"),
    }
    label = {
        "summary": "A person's verdict on a subject; needs the labelling token.",
        "operationId": "label",
        "parameters": [_parameter(LEDGER)],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _reference("Label")}}},
        "responses": {
            **{code: said for code, said in _responses(None, "404").items() if code != "200"},
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
        found["200"]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    if "304" in more:
        found["304"] = {"description": "The answer is still the one whose ETag was given."}
    refusals = [code for code in _REFUSALS if code != "404" or "404" in more]
    return {**found, **{code: _response(_REFUSALS[code], _reference("Error")) for code in refusals}}


def _response(description: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {"description": description, **content}


def _object(members: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": {name: {} for name in members}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
