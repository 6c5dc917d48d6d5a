"""Check of a plan's subtasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
import orjson

from dicast import ConfigError, Score, Subject
from dicast.toolkit.json_values import check_field

from .checks import Check, absent, grade
from .values import Record, parsed, shorten

VERBS = frozenset({
    "add", "analyze", "build", "change", "check", "configure", "create", "define", "delete", "deploy", "ensure",
    "execute", "export", "find", "fix", "implement", "import", "install", "modify", "move", "read", "refactor",
    "remove", "rename", "run", "search", "set", "test", "understand", "update", "verify", "write",
})  # fmt: skip
"""First words of an instruction. Their letters count, so "Adding" is as good as "Add"."""

_ACTIONS = ("read", "edit", "bash")
_KEYS = ("id", "action", "target", "instruction")
_WEIGHT = 0.25
_BLANK = re.compile(r"\s")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SIGNS = re.compile(r"[\W\d_]*")
_LOOKED_AT = 200


def words(value: Iterable[str]) -> tuple[str, ...]:
    """Return the option ``more_verbs`` as a tuple.

    :raises ConfigError: if the value is not a list of single words.
    """
    if isinstance(value, str):
        raise ConfigError(f"more_verbs is a list: write [{value}]")
    verbs = tuple(value)
    for word in verbs:
        if not word.isalpha():
            raise ConfigError(f"{word!r} is not a single word; more_verbs has first words of instructions")
    return verbs


def all_verbs(extra_verbs: Iterable[str]) -> tuple[str, ...]:
    """Return the first words of an instruction in lower case."""
    return *sorted(VERBS), *map(str.casefold, extra_verbs)


@attrs.frozen
class SubtaskPlanning:
    """Share of four checks of a plan's ``subtasks`` that pass, a quarter each.

    ``subtasks_valid``: the subtasks are a list, or the JSON of a list, of objects with ``id``, ``action``, ``target`` and
    ``instruction``. ``actions_valid``: every action is ``read``, ``edit`` or ``bash``. ``targets_valid``: every target of a
    ``read`` or ``edit`` has a ``/`` or a ``.``, no blank, and is not a URL; the target of ``bash`` is free. ``instructions_actionable``:
    every instruction begins with the letters of a known verb ("Add", "Adding"), in any case, after any signs or numbers.
    An empty list passes only the first check.

    :param more_verbs: first words of an instruction in addition to ``add``, ``analyze``, ``build``, ``change``,
        ``check``, ``configure``, ``create``, ``define``, ``delete``, ``deploy``, ``ensure``, ``execute``, ``export``,
        ``find``, ``fix``, ``implement``, ``import``, ``install``, ``modify``, ``move``, ``read``, ``refactor``, ``remove``,
        ``rename``, ``run``, ``search``, ``set``, ``test``, ``understand``, ``update``, ``verify`` and ``write``.
    :param field: the place in the output of the object with ``subtasks``, or of the list itself: a dotted path (``plan.0``) or
        a JSON pointer (``/plan/0``). Text on the way is parsed as JSON. By default it is the whole output.
    """

    tier = "proxy"
    needs_output = "always"

    more_verbs: tuple[str, ...] = attrs.field(default=(), converter=words)
    field: str | None = attrs.field(default=None, validator=check_field)
    _verbs: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)

    @_verbs.default
    def _default_verbs(self) -> tuple[str, ...]:
        return all_verbs(self.more_verbs)

    def score(self, subject: Subject) -> Score:
        """Return the score of the plan in the output of *subject*."""
        record = Record.of(subject, self.field, bare_list="subtasks")
        return grade(plan_checks(record.values, self._verbs), record.problem)


def plan_checks(values: Mapping[str, object], verbs: tuple[str, ...]) -> list[Check]:
    """Return the four checks of the plan in *values*. *verbs* are the first words of instructions, in lower case."""
    subtasks, unread = _subtasks(values)
    finders = {
        "actions_valid": _wrong_action,
        "targets_valid": _wrong_target,
        "instructions_actionable": lambda subtask: _wrong_instruction(subtask, verbs),
    }
    if not subtasks:
        nothing = "" if unread else "subtasks is empty"
        return [Check.of("subtasks_valid", _WEIGHT, unread), *(Check.of(name, _WEIGHT, nothing) for name in finders)]
    return [
        Check.of("subtasks_valid", _WEIGHT, _first(subtasks, _lacking)),
        *(Check.of(name, _WEIGHT, _first(subtasks, find)) for name, find in finders.items()),
    ]


def _subtasks(values: Mapping[str, object]) -> tuple[Sequence[object], str | None]:
    """Return the subtasks, or an empty list and the reason."""
    try:
        value = parsed(values.get("subtasks"))
    except orjson.JSONDecodeError as error:
        return (), f"subtasks is text that is not JSON: {error}"
    if isinstance(value, list | tuple):
        return value, None
    return (), absent(values, "subtasks") or f"subtasks is {shorten(value)}, not a list"


def _first(subtasks: Sequence[object], find: Callable[[Mapping[str, object]], str | None]) -> str | None:
    """Return the problem of the first subtask for which *find* returns one, else None."""
    for number, subtask in enumerate(subtasks):
        if not isinstance(subtask, Mapping):
            return f"subtasks.{number} is {shorten(subtask)}, not an object"
        if (problem := find(subtask)) is not None:
            return problem and f"subtasks.{number}{problem}"  # empty if another check reports the problem
    return None


def _lacking(subtask: Mapping[str, object]) -> str | None:
    missing = [key for key in _KEYS if key not in subtask]
    return f" lacks {', '.join(missing)}" if missing else None


def _wrong_action(subtask: Mapping[str, object]) -> str | None:
    action = subtask.get("action")
    if isinstance(action, str) and action in _ACTIONS:
        return None
    return f".action is {shorten(action)}, not read, edit or bash" if "action" in subtask else ".action is missing"


def _wrong_target(subtask: Mapping[str, object]) -> str | None:
    action, target = subtask.get("action"), subtask.get("target")
    if action == "bash":
        return None
    if not isinstance(action, str) or action not in _ACTIONS:
        return ""  # the form of a target depends on the action
    if not isinstance(target, str):
        return f".target is {shorten(target)}, not a path" if "target" in subtask else ".target is missing"
    if _URL.match(target):
        return f".target is the URL {shorten(target)}, not a path"
    is_path = ("/" in target or "." in target) and not _BLANK.search(target)
    return None if is_path else f".target is {shorten(target)}, not a path: it needs a / or a . and no blank"


def _wrong_instruction(subtask: Mapping[str, object], verbs: tuple[str, ...]) -> str | None:
    instruction = subtask.get("instruction")
    if not isinstance(instruction, str):
        has_key = "instruction" in subtask
        return f".instruction is {shorten(instruction)}, not text" if has_key else ".instruction is missing"
    if _SIGNS.sub("", instruction[:_LOOKED_AT], count=1).casefold().startswith(verbs):
        return None
    return f".instruction is {shorten(instruction)}, which does not begin with a known verb; see more_verbs"
