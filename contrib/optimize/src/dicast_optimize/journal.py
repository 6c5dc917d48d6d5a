"""The answers that an optimization paid for, in order, so that it can resume, and other optimizations can reuse them."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from dicast import ConfigError
from dicast.toolkit.files import MAX_DATA_BYTES, error_reason, read_bytes

NAME = "journal.jsonl"


def digest(*parts: object) -> str:
    """Return a digest of *parts*, which are JSON values."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()


class Journal:
    """The file ``journal.jsonl`` in *folder*: a line about the spec, then a line for each answer.

    With *reuse*, one stored answer serves all equal requests. Otherwise each stored answer serves one request.
    """

    def __init__(self, folder: Path, setup: Mapping[str, str], *, resume: bool, reuse: bool) -> None:
        self._path = folder / NAME
        self._reuse = reuse
        self._answers: dict[tuple[str, str, int], Mapping[str, Any]] = {}
        self._foreign: dict[str, Mapping[str, Any]] = {}
        self._request_counts: Counter[tuple[str, str]] = Counter()
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
            self._path.unlink()  # an empty journal cannot be resumed
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def borrow(self, folder: Path, evaluator: str) -> None:
        """Also use the evaluations in another optimization's *folder* as answers.

        :raises ConfigError: if there are none, or another *evaluator* made them.
        """
        lines = _lines(folder / NAME)
        if lines[0]["setup"]["evaluator"] != evaluator:
            raise ConfigError(f"the evaluations in {folder} were made by another evaluator, or for another task_model")
        self._foreign = {line["key"]: line["answer"] for line in lines if line.get("what") == "evaluation"}

    def answer(self, what: str, key: str) -> tuple[Mapping[str, Any] | None, bool]:
        """Return the stored answer to *key*, or None; and whether it counts as a call that this optimization pays for."""
        n = self._request_counts[what, key]
        self._request_counts[what, key] += 1
        if what == "evaluation" and key in self._foreign:
            return self._foreign[key], False
        again = self._reuse and what == "evaluation" and n > 0
        answer = self._answers.get((what, key, 0 if again else n))
        if answer is not None and not again:
            self.replayed += 1
        return answer, not again

    def keep(self, what: str, key: str, answer: Mapping[str, Any]) -> None:
        """Store a new *answer*."""
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
                f"{self._path.parent} was started with another {', another '.join(changed)}: "
                "undo the change, or leave --resume out"
            )
        for line in lines[1:]:
            n = self._bought[line["what"], line["key"]]
            self._bought[line["what"], line["key"]] += 1
            self._answers[line["what"], line["key"], n] = line["answer"]
        _cut_torn_end(self._path)

    def _write(self, line: Mapping[str, Any]) -> None:
        """Append *line* completely or not at all.

        :raises ConfigError: if it cannot be written, for example on a full disk.
        """
        data = orjson.dumps(line, default=str) + b"\n"
        size = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self._file.truncate(size)
            advice = "Make room, then add --resume." if size else "Make room."
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}. {advice}") from error


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal, without an incomplete last line.

    :raises ConfigError: if there is no journal.
    """
    try:
        complete_data = read_bytes(path, MAX_DATA_BYTES).rpartition(b"\n")[0]
        lines = [orjson.loads(line) for line in complete_data.splitlines()]
    except FileNotFoundError as error:
        raise ConfigError(f"there is no optimization in {path.parent}") from error
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(f"{path} is not a journal of an optimization: {error_reason(error)}") from error
    if not lines or "setup" not in lines[0]:
        raise ConfigError(f"{path} is not a journal of an optimization")
    return lines


def _cut_torn_end(path: Path) -> None:
    data = read_bytes(path, MAX_DATA_BYTES)
    complete_data = data.rpartition(b"\n")[0] + b"\n"
    if complete_data != data:
        os.truncate(path, len(complete_data))
