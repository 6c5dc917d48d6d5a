"""What an optimisation has bought, in the order in which it did: its memory over restarts, and a cache for others."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from dicast import ConfigError
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

NAME = "journal.jsonl"


def digest(*parts: object) -> str:
    """A digest of *parts*, which are JSON."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()


class Journal:
    """The file ``journal.jsonl`` of *folder*: a line about the spec, then one for each answer.

    With *reuse* an answer is given as often as it is asked for; else each time that it was bought.
    """

    def __init__(self, folder: Path, setup: Mapping[str, str], *, resume: bool, reuse: bool) -> None:
        self._path = folder / NAME
        self._reuse = reuse
        self._answers: dict[tuple[str, str, int], Mapping[str, Any]] = {}
        self._foreign: dict[str, Mapping[str, Any]] = {}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._bought: Counter[tuple[str, str]] = Counter()
        self.replayed = 0
        if resume:
            self._take_up(setup)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from error
        try:
            if not resume:
                self._write({"what": "setup", "setup": dict(setup)})
        except BaseException:
            self.close()
            self._path.unlink()  # it is empty, and there is nothing to resume
            raise

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def borrow(self, folder: Path, evaluator: str) -> None:
        """Take the evaluations of another optimisation's *folder* for answers, too.

        :raises ConfigError: when there are none, or another *evaluator* made them.
        """
        lines = _lines(folder / NAME)
        if lines[0]["setup"]["evaluator"] != evaluator:
            raise ConfigError(f"the evaluations in {folder} were made by another evaluator, or for another task_model")
        self._foreign = {line["key"]: line["answer"] for line in lines if line.get("what") == "evaluation"}

    def answer(self, what: str, key: str) -> tuple[Mapping[str, Any] | None, bool]:
        """The answer to *key*, None where it has to be bought; and whether this optimisation bought it, or has to."""
        n = self._asked[what, key]
        self._asked[what, key] += 1
        if what == "evaluation" and key in self._foreign:
            return self._foreign[key], False
        again = self._reuse and what == "evaluation" and n > 0
        found = self._answers.get((what, key, 0 if again else n))
        if found is not None and not again:
            self.replayed += 1
        return found, not again

    def keep(self, what: str, key: str, answer: Mapping[str, Any]) -> None:
        """Note an *answer* that was bought."""
        n = self._bought[what, key]
        self._bought[what, key] += 1
        self._answers[what, key, n] = answer
        self._write({"what": what, "key": key, "answer": answer})

    def _take_up(self, setup: Mapping[str, str]) -> None:
        lines = _lines(self._path)
        before = lines[0]["setup"]
        changed = [name for name in setup if before.get(name) != setup[name]]
        if changed:
            raise ConfigError(
                f"{self._path.parent} was begun with another {', another '.join(changed)}: "
                "undo the change, or leave --resume out"
            )
        for line in lines[1:]:
            n = self._bought[line["what"], line["key"]]
            self._bought[line["what"], line["key"]] += 1
            self._answers[line["what"], line["key"], n] = line["answer"]
        _cut_torn_end(self._path)

    def _write(self, line: Mapping[str, Any]) -> None:
        """Append *line*, whole or not at all.

        :raises ConfigError: if it cannot be written, for example on a full disk.
        """
        data = orjson.dumps(line, default=str) + b"\n"
        size = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self._file.truncate(size)
            more = "Make room, then add --resume." if size else "Make room."
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}. {more}") from error


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a journal but a last one that was not written to its end.

    :raises ConfigError: when there is no journal there.
    """
    try:
        whole = read_bytes(path, MAX_DATA_BYTES).rpartition(b"\n")[0]
        found = [orjson.loads(line) for line in whole.splitlines()]
    except FileNotFoundError as error:
        raise ConfigError(f"there is no optimisation in {path.parent}") from error
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(f"{path} is no journal of an optimisation: {error}") from error
    if not found or "setup" not in found[0]:
        raise ConfigError(f"{path} is no journal of an optimisation")
    return found


def _cut_torn_end(path: Path) -> None:
    data = read_bytes(path, MAX_DATA_BYTES)
    whole = data.rpartition(b"\n")[0] + b"\n"
    if whole != data:
        os.truncate(path, len(whole))
