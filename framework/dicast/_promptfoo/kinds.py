"""The types of promptfoo's assertions, each with its check or with the reason why it has no check."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from .._kernel.values.errors import ConfigError
from .._kernel.values.names import nearest
from ..toolkit.yaml.nodes import Node
from .code import CodeFiles
from .configuration import (
    Folders,
    as_text,
    data_of,
    is_file,
    node_of,
    read_node,
    read_text,
    renamed,
    rendered,
    text_node,
    variables_of,
)
from .lists import comma_separated

DRAFT = "http://json-schema.org/draft-07/schema#"
"""The dialect in which promptfoo reads schemas."""

JUDGED = {
    "llm-rubric": "llm_rubric",
    "factuality": "factuality",
    "model-graded-factuality": "factuality",
    "model-graded-closedqa": "closedqa",
}
"""Types that ask a model, with the name of their item in ``check/assertions``."""

SET = "assert-set"
_TEXTS = ("contains", "icontains", "starts-with", "regex", "levenshtein", "rouge-n")
_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_LIMITS = {"latency": ("max_latency", 1000.0), "cost": ("max_cost", 1.0)}
_CODE = ("javascript", "python")
_JSON = ("is-json", "contains-json")
CARRIED = (*_TEXTS, *_LISTS, *_LIMITS, *_CODE, *_JSON, *JUDGED, "equals", "word-count", "is-refusal")
"""Types that are converted, except sets."""

_MODEL = "it asks a model in promptfoo's own way"
_TEXT_MEASURE = "dicast has no check with the same tokens"
_SYNTAX = "dicast has no parser for it; write it as check/python or evaluator/command"
_TRACE = "promptfoo reads it from its own traces; see the plugins traces and agent"
INSTEAD = {
    "similar": "it needs an embedding model, and no other measure takes its place; compute it in check/python",
    **dict.fromkeys(("similar:cosine", "similar:dot", "similar:euclidean"), "it needs an embedding model, and no other measure takes its place; compute it in check/python"),
    "classifier": "it needs a classification model; ask it in check/python or evaluator/http",
    "moderation": "it needs a moderation service; ask it in check/python or evaluator/http",
    "guardrails": "it reads the answer of a provider's guardrails; put it into a column, and check that",
    "pi": "it asks a service of its own; ask it in evaluator/http",
    "webhook": "name the address in evaluator/http",
    "ruby": "write the function in Python or JavaScript",
    "bleu": f"{_TEXT_MEASURE}; compute it in check/python",
    "gleu": f"{_TEXT_MEASURE}; compute it in check/python",
    "meteor": f"{_TEXT_MEASURE}; compute it in check/python",
    "perplexity": "it needs token probabilities, which rows do not have",
    "perplexity-score": "it needs token probabilities, which rows do not have",
    "finish-reason": "rows do not have the reason why a model stopped",
    **dict.fromkeys(("is-sql", "contains-sql", "is-xml", "contains-xml", "is-html", "contains-html"), _SYNTAX),
    **dict.fromkeys(("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call"), "the tools are in the provider's configuration; write their schemas into proxy/tool_params_schema"),
    "g-eval": f"{_MODEL}, in several steps; write its criteria into llm/judge",
    "agent-rubric": f"{_MODEL}, with tools; see the judges of the plugin agent",
    "search-rubric": f"{_MODEL}, with a web search",
    "answer-relevance": "it needs an embedding model; rag/answer_relevance measures something else",
    "context-faithfulness": f"{_MODEL}; rag/faithfulness asks a similar question",
    "context-recall": f"{_MODEL}; rag/context_recall asks a similar question",
    "context-relevance": f"{_MODEL}; rag/context_precision asks a similar question",
    "conversation-relevance": f"{_MODEL}, over a conversation; see the judges of turns",
    "select-best": "it compares the outputs of several providers; see llm/pairwise and dicast compare",
    "max-score": "it compares the outputs of several providers; see dicast compare",
    "human": "label the outputs: dicast label",
    "skill-used": "see the judges of the plugin agent",
    "tool-call-f1": "rows do not have the calls of tools; see the plugin traces",
    **dict.fromkeys(("trajectory:goal-success", "trajectory:tool-args-match", "trajectory:step-count", "trajectory:tool-sequence", "trajectory:tool-used", "trace-error-spans", "trace-span-count", "trace-span-duration"), _TRACE),
}  # fmt: skip
"""Types that are not converted, with the reason and the fix."""

_UNKNOWN = "dicast has no check of this name; write it as check/python"
_JAVASCRIPT_ONLY = re.compile(r"\(\?[a-zA-Z-]+[):]|\(\?P|\\[AzQEpPCaG]|\[\[:")
"""Parts of a pattern that JavaScript does not support, or understands differently from RE2 and Python."""


class NotCarried(Exception):
    """An assertion cannot be converted; the message is the reason and a way out, *label* a name for it in place of its type."""

    def __init__(self, instead: str, label: str | None = None) -> None:
        super().__init__(instead)
        self.label = label


@attrs.frozen
class Reader:
    """Reader of the values of one test's assertions; *names* are the test's variables."""

    names: Mapping[str, Any]
    folders: Folders
    code: CodeFiles

    def item(self, name: str, keys: Mapping[str, Node], *, negate: bool) -> dict[str, Any]:
        """Return the item of ``check/assertions`` for an assertion of the type *name*.

        :raises NotCarried: if the assertion cannot be converted.
        """
        value, threshold = keys.get("value"), data_of(keys.get("threshold"))
        if name not in CARRIED:
            near = nearest(name, (*CARRIED, *INSTEAD, SET))
            raise NotCarried(INSTEAD.get(name) or (f"did you mean {near}?" if near else _UNKNOWN))
        if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
            raise NotCarried(f"its threshold is {threshold!r}: write a number")
        if name in _LIMITS:
            return self._limit(name, threshold)
        if name == "is-refusal":
            return {"check": "is_refusal"}
        if name in JUDGED:
            return self._judged(name, value, threshold, negate=negate)
        if name in _CODE:
            return self._code(name, value, threshold)
        if is_file(data_of(value)) and self.code.language(data_of(value)) is not None:
            raise NotCarried(f"its value comes from the code {data_of(value)}: write the value itself")
        return self._plain(name, value, threshold)

    def _plain(self, name: str, value: Node | None, threshold: float | None) -> dict[str, Any]:
        if name in _JSON:
            return self._schema(name, value)
        if value is None or value.value is None:
            raise NotCarried("it needs a value")
        if name == "word-count":
            return self._words(self._loaded(value))
        if name in _LISTS:
            return self._list(name, self._loaded(value))
        if name == "equals":
            return {"check": "equals", "value": self._equal(value)}
        item: dict[str, Any] = {"check": name.replace("-", "_"), "value": self._text(name, self._loaded(value))}
        if name == "rouge-n":
            item |= {"n": 1, "threshold": 0.75 if threshold is None else threshold, "tokens": "treebank"}
        if name == "levenshtein":
            item |= {"threshold": 5 if threshold is None else threshold}
        return item

    def _limit(self, name: str, threshold: float | None) -> dict[str, Any]:
        if threshold is None:
            raise NotCarried("it needs a threshold that is a number")
        check, unit = _LIMITS[name]
        return {"check": check, "value": threshold / unit}

    def _judged(self, name: str, value: Node | None, threshold: float | None, *, negate: bool) -> dict[str, Any]:
        if negate and name != "llm-rubric":
            raise NotCarried(f"promptfoo reads not-{name} as {name}: write the one that you mean")
        if value is None or value.value is None:
            raise NotCarried("it needs a value: the text that a model judges by")
        node = self._loaded(value)
        text = self.filled(node) if isinstance(node.value, str) else orjson.dumps(data_of(node)).decode()
        item: dict[str, Any] = {"check": JUDGED[name], "value": text}
        if name == "llm-rubric" and threshold is not None:
            item["threshold"] = threshold
        return item

    def _code(self, name: str, value: Node | None, threshold: float | None) -> dict[str, Any]:
        source = data_of(value)
        if value is None or not isinstance(source, str) or not source.strip():
            raise NotCarried("it needs a value: an expression, or file://PATH")
        limit: dict[str, Any] = {"above": 0} if threshold is None else {"threshold": threshold}
        limit["complete"] = True
        try:
            if is_file(source):
                return {"check": name, **self.code.file(name, source, value.place), **limit}
            return {"check": name, **self.code.inline(name, self._rendered(source)), **limit}
        except ConfigError as error:
            raise NotCarried(str(error)) from error

    def _schema(self, name: str, value: Node | None) -> dict[str, Any]:
        item: dict[str, Any] = {"check": name.replace("-", "_")}
        if name == "contains-json":
            item["objects"] = True
        if value is None or not value.value:
            return item
        node = self._loaded(value)
        if isinstance(node.value, str):
            try:
                node = text_node(self._rendered(node.value), value.place)
            except ConfigError as error:
                raise NotCarried("its schema is neither JSON nor YAML") from error
        schema = data_of(node)
        if not isinstance(schema, Mapping):
            raise NotCarried("its schema is not an object")
        return item | {"value": schema if "$schema" in schema else {"$schema": DRAFT, **schema}}

    def _words(self, node: Node) -> dict[str, Any]:
        value = data_of(node)
        if isinstance(value, Mapping):
            limits = {key: value[key] for key in ("min", "max") if value.get(key) is not None}
            if not limits or not all(isinstance(entry, int) and entry >= 0 for entry in limits.values()):
                raise NotCarried("its value has min and max, which are whole numbers")
            if limits == {"min": 0}:
                raise NotCarried("min 0 asks for nothing: leave it out")
            return {"check": "word_count", **limits}
        text = self._rendered(value) if isinstance(value, str) else value
        try:
            count = float(text)
        except (TypeError, ValueError) as error:
            raise NotCarried("its value is a number, or has min and max") from error
        if not count.is_integer() or count < 0:
            raise NotCarried(f"no text has {count:g} words")
        return {"check": "word_count", "min": int(count), "max": int(count)}

    def _list(self, name: str, node: Node) -> dict[str, Any]:
        values = data_of(node)
        if isinstance(values, str):
            try:
                texts: list[str] = comma_separated(self._rendered(values))
            except ValueError as error:
                raise NotCarried(f"its value cannot be read as a list: {error}") from error
        elif isinstance(values, list):
            texts = [self.filled(node_of(entry, node.place)) for entry in values]
        else:
            raise NotCarried("its value is a list, or a text in commas")
        if not texts or "" in texts:
            raise NotCarried("its list is empty or has an empty text")
        case = {"ignore_case": True} if name.startswith("i") else {}
        return {"check": name.removeprefix("i").replace("-", "_"), "value": texts, **case}

    def _equal(self, value: Node) -> Any:
        node = self._loaded(value)
        if isinstance(node.value, dict):
            return data_of(node)
        if isinstance(node.value, list):
            return [self.filled(entry) if isinstance(entry.value, str) else data_of(entry) for entry in node.value]
        return self.filled(node)

    def _text(self, name: str, node: Node) -> str:
        value = data_of(node)
        numbers = name in ("contains", "icontains") and not isinstance(value, bool) and isinstance(value, int | float)
        if not isinstance(value, str) and not numbers:
            raise NotCarried("its value is a text")
        text = self.filled(node)
        if not text:
            raise NotCarried("its value is an empty text")
        if name == "regex" and _JAVASCRIPT_ONLY.search(text):
            raise NotCarried(
                "JavaScript reads this pattern in another way: write it without flags and classes of other dialects"
            )
        return text

    def _loaded(self, node: Node) -> Node:
        """Return *node*, or the content of the file that it names."""
        path = self.folders.file(node)
        if path is None:
            return node
        try:
            if path.suffix in (".json", ".yaml", ".yml"):
                return read_node(path)
            if path.suffix == ".txt":
                return node_of(read_text(path).strip(), node.place)
        except ConfigError as error:
            raise NotCarried(f"{node.value} cannot be read: {error}") from error
        raise NotCarried(f"promptfoo reads values from .json, .yaml and .txt files, not from {node.value}")

    def filled(self, node: Node) -> str:
        """Return the text of *node*: as a template if all variables that it names are texts of the row, else with the values of this row.

        :raises NotCarried: if a name is not a variable of the test, or the text has expressions other than names in braces.
        """
        text = as_text(data_of(node))
        result = self._rendered(text)
        names = [*variables_of(text)]
        if names and all(isinstance(self.names.get(name), str) for name in names):
            return renamed(text)
        if "{{" in result:
            raise NotCarried("its value has braces after its variables were filled in")
        return result

    def _rendered(self, text: str) -> str:
        for name in variables_of(text):
            if name.partition(".")[0] not in self.names:  # promptfoo would take an empty text
                raise NotCarried(f"its test has no variable {name}: write the value itself")
        result = rendered(text, self.names)
        if result is None:
            raise NotCarried("its value is more than texts with names in braces")
        return result


Fault = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]
