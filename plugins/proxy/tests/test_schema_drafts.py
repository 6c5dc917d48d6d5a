"""The schema check against the reference implementation (the package jsonschema), for schemas of every draft."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from dicast import ConfigError, Subject
from dicast_proxy import ToolParamsSchema

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
KEYS = st.sampled_from(["a", "b", "ab", "c/d"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 4)
    | st.sampled_from([0.5, 1.0, -0.0, 2.5, 3.0, 1e20, 2**63, "", "a", "ab", "abc", "é", "1", "\U0001f600"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
SIZES = st.integers(0, 3)
BOUNDS = st.integers(-2, 3) | st.sampled_from([0.5, 2.5, 1.0])


def keywords(draft, inner):
    """Return the keywords of a *draft* with strategies for their values; *inner* makes subschemas."""
    schemas, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(KEYS, inner, max_size=3)
    names = st.lists(KEYS, min_size=1, max_size=2, unique=True)
    keyword_schemas = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
        "minimum": BOUNDS,
        "maximum": BOUNDS,
        "multipleOf": st.integers(1, 3),
        "minLength": SIZES,
        "maxLength": SIZES,
        "pattern": st.sampled_from(["^a", "b$", "[0-9]+", "a|1", "^.{2}$"]),
        "minItems": SIZES,
        "maxItems": SIZES,
        "uniqueItems": st.booleans(),
        "minProperties": SIZES,
        "maxProperties": SIZES,
        "required": names,
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
        "additionalProperties": st.booleans() | inner,
        "items": inner if draft == "2020-12" else inner | schemas,
        "allOf": schemas,
        "anyOf": schemas,
        "oneOf": schemas,
        "not": inner,
        "default": VALUES,
        "description": st.just("text"),
    }
    if draft == "4":
        return keyword_schemas
    keyword_schemas |= {
        "const": VALUES,
        "contains": inner,
        "propertyNames": inner,
        "exclusiveMinimum": BOUNDS,
        "exclusiveMaximum": BOUNDS,
    }
    if draft == "6":
        return keyword_schemas
    keyword_schemas |= {"if": inner, "then": inner, "else": inner}
    if draft == "7":
        return keyword_schemas
    keyword_schemas |= {
        "minContains": SIZES,
        "maxContains": SIZES,
        "dependentSchemas": named,
        "dependentRequired": st.dictionaries(KEYS, names, max_size=2),
    }
    keyword_schemas["unevaluatedProperties"] = inner
    if draft == "2019-09":  # there the reference implementation ends at "items": false next to unevaluatedItems
        return keyword_schemas
    return keyword_schemas | {"prefixItems": schemas, "unevaluatedItems": inner}


def schemas(draft, depth=2, *, refers=True):
    leaf = st.just({}) | TYPES.map(lambda type_name: {"type": type_name})
    if refers:
        leaf |= st.just({"$ref": "#/definitions/shared"})
    leaf = leaf if draft == "4" else leaf | st.booleans()
    if depth == 0:
        return leaf
    keyword_schemas = keywords(draft, schemas(draft, depth - 1, refers=refers))
    chosen = st.lists(st.sampled_from(sorted(keyword_schemas)), max_size=3, unique=True)
    return leaf | chosen.flatmap(lambda names: st.fixed_dictionaries({name: keyword_schemas[name] for name in names}))


def whole_schema(draft):
    shared = schemas(draft, 1, refers=False)  # no circle, at which the reference implementation ends
    members = {"$schema": st.just(DRAFTS[draft]), "definitions": st.fixed_dictionaries({"shared": shared})}
    keyword_schemas = keywords(draft, schemas(draft))
    chosen = st.lists(st.sampled_from(sorted(keyword_schemas)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries(members | {name: keyword_schemas[name] for name in names})
    )


@pytest.mark.slow
@pytest.mark.parametrize("draft", DRAFTS)
@settings(
    max_examples=settings.default.max_examples, deadline=None
)  # a schema of the reference implementation takes its time
@given(data=st.data())
def test_the_reference_implementation_agrees(draft, data):
    schema, params = data.draw(whole_schema(draft), "schema"), data.draw(VALUES, "params")
    reference = validator_for(schema)
    try:
        reference.check_schema(schema)
        expected = reference(schema).is_valid(params)
    except jsonschema.SchemaError:
        return
    score = ToolParamsSchema(tools={"tool": schema}).score(
        Subject("row", "1", output={"tool": "tool", "params": params})
    )
    assert score.value == expected, score.details


@settings(
    max_examples=settings.default.max_examples, deadline=None
)  # a schema of the reference implementation takes its time
@given(
    st.recursive(
        VALUES,
        lambda x: st.dictionaries(
            st.sampled_from(["type", "properties", "a", "minimum", "enum", "items", "required"]), x, max_size=3
        ),
    )
)
def test_what_the_reference_implementation_refuses_is_refused(schema):
    if not isinstance(schema, dict):
        return
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        with pytest.raises(ConfigError, match="the schema of 'tool' at /"):
            ToolParamsSchema(tools={"tool": schema})
    else:
        ToolParamsSchema(tools={"tool": schema})
