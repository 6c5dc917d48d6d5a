"""Texts, ids and times of generated sessions, with the sizes and the characters of real sessions of coding agents."""

from __future__ import annotations

import json
import random
from typing import Any

_WORDS = """
    the function reads every line of the file and returns an error when the connection was closed before the last request
    so we should check whether the test covers it first then update the configuration and run everything again please
""".split()  # noqa: SIM905
_NAMES = ("settings", "client", "models", "views", "runner", "parser", "cache", "queue", "worker", "store")
_CODE = '''\
def {name}_{number}(items: list[dict[str, object]], limit: int = {number}) -> dict[str, int]:
    """Count the {name} of each kind, up to *limit*."""
    counts: dict[str, int] = {{}}
    for item in items[:limit]:
        kind = str(item.get("{name}", "unknown"))
        counts[kind] = counts.get(kind, 0) + 1
    return counts


'''


class Texts:
    """A source of texts that depends on *seed* only."""

    def __init__(self, seed: int = 7) -> None:
        self.chance = random.Random(seed)
        self._serial = 0
        self._prose = [self._sentences(60) for _ in range(200)]
        self._outputs = [self._output(number) for number in range(200)]

    def ask(self) -> str:
        """Return a user's request of some 200 characters."""
        return self.prose(200)

    def prose(self, size: int) -> str:
        """Return sentences of about *size* characters."""
        return f"{self.chance.choice(self._prose)[:size]} ({self.serial()})"

    def output(self, size: int) -> str:
        """Return the output of a tool of about *size* characters: code, a listing, a log, or JSON."""
        return f"{self.chance.choice(self._outputs)[:size]}\n{self.serial()}"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a call."""
        path = f"/srv/app/src/{self.chance.choice(_NAMES)}.py"
        if self.chance.random() < 0.3:
            return {"file_path": path, "old_string": self.output(300), "new_string": self.output(400)}
        return {"command": f"grep -rn {self.chance.choice(_NAMES)} {path} | head -{self.serial()}", "timeout": 120000}

    def serial(self) -> int:
        """Return the next number."""
        self._serial += 1
        return self._serial

    def uuid(self) -> str:
        """Return a random UUID."""
        digits = self.hex(32)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def hex(self, digits: int) -> str:
        """Return random hexadecimal digits."""
        return f"{self.chance.getrandbits(digits * 4):0{digits}x}"

    def time(self) -> str:
        """Return a time in ISO 8601, later than the previous time."""
        second, millisecond = divmod(self.serial() * 37, 1000)
        minute, second = divmod(second, 60)
        hour, minute = divmod(minute, 60)
        return f"2026-03-{1 + hour // 24 % 28:02}T{hour % 24:02}:{minute:02}:{second:02}.{millisecond:03}Z"

    def usage(self) -> dict[str, int]:
        """Return the tokens of a call of a model."""
        return {"input_tokens": self.chance.randint(900, 90_000), "output_tokens": self.chance.randint(20, 2_000)}

    def _sentences(self, count: int) -> str:
        lengths = [self.chance.randint(6, 18) for _ in range(count)]
        return " ".join(f"{' '.join(self.chance.choices(_WORDS, k=length)).capitalize()}." for length in lengths)

    def _output(self, number: int) -> str:
        name, lines = self.chance.choice(_NAMES), range(1, 90)
        match number % 4:
            case 0:
                return "".join(_CODE.format(name=name, number=line) for line in range(number, number + 20))
            case 1:
                return "\n".join(f"-rw-r--r-- 1 app app {self.chance.randint(1, 99999)} Mar  3 10:{line % 60:02} src/{name}/part_{line}.py" for line in lines)  # fmt: skip
            case 2:
                return "\n".join(f"2026-03-03 10:{line % 60:02}:12,{self.chance.randint(0, 999):03} INFO {name} [{self.hex(12)}] request {line} took {self.chance.random():.4f} s" for line in lines)  # fmt: skip
        return json.dumps([{"id": line, "name": name, "path": f"src/{name}.py:{line}", "ok": line % 7 > 0, "hash": self.hex(40)} for line in lines], indent=1)  # fmt: skip
