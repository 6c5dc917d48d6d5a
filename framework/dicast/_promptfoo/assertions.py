"""promptfoo's assertions as the items of ``check/assertions``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .._kernel.contract.registry import Registry
from .._kernel.pipeline.build import load_pipeline
from .._kernel.values import Failure, Subject
from .._kernel.values.errors import ConfigError
from ..toolkit.yaml.nodes import Node, Place
from .code import CodeFiles
from .configuration import (
    Folders,
    Loss,
    Losses,
    column_name,
    data_of,
    follow,
    is_file,
    items,
    mapping_of,
    read_node,
    rendered,
)
from .graders import Graders
from .kinds import JUDGED, SET, NotCarried, Reader

_KEYS = {"type", "value", "weight", "threshold", "metric", "description", "provider"}
_LONGEST = 200

Fault = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]


def fault_finder() -> Fault:
    """Return a function of an item and the variables of its row. It returns the reason why ``check/assertions`` refuses the item, else None.

    Without the plugin it always returns None.
    """
    if "check" not in Registry().scan():
        return lambda *_: None
    (slot,) = load_pipeline({"metrics": ["check/assertions"]}, needs_source=False).metrics

    def fault(item: Mapping[str, Any], names: Mapping[str, Any]) -> str | None:
        context = {column_name(name): value for name, value in names.items()}
        row = Subject("row", "1", output="", context={**context, "latency_seconds": 0, "cost": 0, "assert": [item]})
        answer = slot.component.score(row)
        message = answer.message if isinstance(answer, Failure) else None
        return message and message.removeprefix("assert: item 1: ").removeprefix(f"{item['check']}: ")[:_LONGEST]

    return fault


@attrs.frozen
class Setting:
    """Parts that all tests of a configuration share: its *root*, its folders, its code, its graders, the losses, and the check of items (*fault*)."""

    root: Mapping[str, Node]
    folders: Folders
    code: CodeFiles
    graders: Graders
    losses: Losses
    fault: Fault


@attrs.define
class Carried:
    """The assertions of a test with the variables *names*: the converted *items*, and the *lost* parts, which cannot be converted.

    *count* is the number of assertions that affect the verdict, converted or not.
    """

    setting: Setting
    names: Mapping[str, Any]
    items: list[dict[str, Any]] = attrs.field(factory=list)
    lost: list[Loss] = attrs.field(factory=list)
    count: int = 0

    def add(self, node: Node) -> None:
        """Convert an assertion, or a file of assertions; record the reason if that is impossible."""
        try:
            node = follow(node, self.setting.root)
            path = self.setting.folders.file(node) if is_file(node.value) else None
            if path is not None:
                for child in items(read_node(path)):
                    self.add(child)
                return
        except ConfigError as error:
            self.lose(node.place, f"assertion {data_of(node)!r:.60}", str(error))
            return
        self._add(node)

    def lose(self, place: Place, what: str, instead: str) -> None:
        """Record a part of the test that cannot be converted."""
        self.lost.append(self.setting.losses.add(place, what, instead))

    def _add(self, node: Node) -> None:
        keys = mapping_of(node)
        kind, weight = data_of(keys.get("type")), data_of(keys.get("weight"))
        if weight == 0 and not isinstance(weight, bool):
            self.setting.losses.add(node.place, f"{kind} of weight 0", "it decides nothing, and is left out")
            return
        self.count += 1
        try:
            item = self._item(kind, keys)
        except NotCarried as reason:
            self.lose(node.place, reason.label or str(kind or "an assertion without a type"), str(reason))
            return
        if item is not None:
            self.items.append(item)

    def _item(self, kind: Any, keys: Mapping[str, Node]) -> dict[str, Any] | None:
        if not isinstance(kind, str):
            raise NotCarried("write it as {check, value} in the rows' assert")
        odd = sorted(set(keys) - _KEYS - ({"assert"} if kind == SET else set()))
        if odd:
            change = "it changes what the assertion sees or does: write a check of the output as it is"
            raise NotCarried(change, f"{kind} with {', '.join(odd)}")
        extra = self._extra(kind, keys)
        if kind == SET:
            return self._set(keys, extra)
        name, negate = kind.removeprefix("not-"), kind.startswith("not-")
        reader = Reader(self.names, self.setting.folders, self.setting.code)
        item = reader.item(name, keys, negate=negate)
        if name in JUDGED:
            item["check"] = self.setting.graders.judge(item["check"], keys.get("provider"))
        item |= {"negate": True} if negate else {}
        why = None if name in JUDGED or "file" in item else self.setting.fault(item, self.names)
        if why is not None:
            raise NotCarried(f"check/assertions says: {why}")
        return item | extra

    def _extra(self, kind: str, keys: Mapping[str, Node]) -> dict[str, Any]:
        """Return the weight and the metric of an item, if the assertion has them."""
        extra: dict[str, Any] = {}
        weight, metric = data_of(keys.get("weight")), data_of(keys.get("metric"))
        if weight is not None:
            if isinstance(weight, bool) or not isinstance(weight, int | float):
                raise NotCarried("a weight is a number", f"{kind} of weight {weight}")
            if weight < 0:
                raise NotCarried("a weight is above 0; not-… reverses a check", f"{kind} of weight {weight}")
            extra["weight"] = weight
        if metric is not None:
            extra["metric"] = rendered(str(metric), self.names) or str(metric)
        return extra

    def _set(self, keys: Mapping[str, Node], extra: Mapping[str, Any]) -> dict[str, Any] | None:
        threshold = data_of(keys.get("threshold"))
        if threshold is not None and not is_share(threshold):
            raise NotCarried(f"its threshold is {threshold!r}; a threshold is in [0, 1]")
        inner = Carried(self.setting, self.names)
        for node in items(keys.get("assert")):
            inner.add(node)
        self.lost += inner.lost
        if not inner.items:
            if not inner.lost:
                raise NotCarried("it has no assertion that decides anything")
            return None
        limit = {} if threshold is None else {"threshold": threshold}
        return {"check": "assert_set", "assert": inner.items, **limit, **extra}


def is_share(value: object) -> bool:
    """Return whether *value* is a number in [0, 1]."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
