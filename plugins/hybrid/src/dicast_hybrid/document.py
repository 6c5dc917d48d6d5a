"""The file that ``dicast calibrate`` writes, as a cascade reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Judge, Problem

VERSION = 1

_HALF = 0.5
_NOISE = 1e-9
_MOST = 5


@attrs.frozen
class Calibrated:
    """A calibration: what a verdict and its reference have to have in common (*agree*), and what it found of each *stage*."""

    digest: str
    target: float
    alpha: float
    agree: str
    window: float | None
    pass_at: float | None
    stages: Sequence[Mapping[str, Any]]

    def disagree(self, score: float, reference: float) -> bool:
        """Whether two scores disagree, as the calibration counts it."""
        if self.agree == "within":
            return abs(score - reference) > (self.window or 0.0) + _NOISE
        if self.agree == "winner":
            return _side(score) != _side(reference)
        line = _HALF if self.pass_at is None else self.pass_at
        return (score >= line) != (reference >= line)


def _side(score: float) -> float:
    return _HALF if score == _HALF else float(score > _HALF)


def read_document(path: Path) -> Calibrated:
    """The calibration in the file *path*.

    :raises ConfigError: when there is none, or it is not as it was written.
    """
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError as error:
        wrong = f"no calibration at {path}: dicast calibrate FILE --gold GOLD --out {path} writes it"
        raise ConfigError(Problem(wrong, path="calibration", value=str(path))) from error
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(Problem(f"the calibration cannot be read: {error}", str(path), path="calibration")) from error
    if not isinstance(found, dict) or not isinstance(found.get("stages"), list):
        raise ConfigError(Problem("this is no calibration: dicast calibrate writes one", str(path), path="calibration"))
    rest = {key: value for key, value in found.items() if key != "digest"}
    if sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest() != found.get("digest"):
        wrong = "the file is not as dicast calibrate wrote it (digest): it was edited, or cut; calibrate again"
        raise ConfigError(Problem(wrong, str(path), path="calibration"))
    if found.get("version") != VERSION:
        wrong = f"the calibration is of version {found.get('version')!r}, this dicast reads {VERSION}; calibrate again"
        raise ConfigError(Problem(wrong, str(path), path="calibration"))
    return Calibrated(
        found["digest"],
        found["target"],
        found["alpha"],
        found["agree"],
        found["window"],
        found["pass_at"],
        tuple(found["stages"]),
    )


def answered(config: str, model: str | None) -> str:
    """The fingerprint of a stage whose component has the fingerprint *config*, when *model* has answered."""
    return sha256("\n".join((config, *([model] if model else ()))).encode()).hexdigest()


def check_stages(document: Calibrated, stages: Sequence[Judge], path: Path) -> None:
    """See that *document* is about *stages*, but for the last of them, which keeps all that it is asked.

    :raises ConfigError: naming everything that differs.
    """
    if len(document.stages) != len(stages) - 1:
        wrong = f"the calibration has {len(document.stages)} steps and the cascade {len(stages) - 1}: calibrate this cascade"
        raise ConfigError(Problem(wrong, str(path), path="stages"))
    problems = []
    for found, stage in zip(document.stages, stages, strict=False):
        slot = getattr(stage, "slot", None)
        if slot is None:
            problems.append(Problem(f"nobody can say whether {found['label']} is what was calibrated", str(path)))
        elif slot.fingerprint != found["of"]["fingerprint"]:
            differs = "; ".join(_differing(found["of"], slot))
            wrong = f"{found['label']} is not the judge that was calibrated: {differs}; calibrate again, or take the change back"
            problems.append(Problem(wrong, str(path), path=slot.path))
    if problems:
        raise ConfigError(problems)


def _differing(before: Mapping[str, Any], slot: Any) -> Iterator[str]:
    """What of a stage is not what it was, in words."""
    if before["component"] != slot.name:
        yield f"it was {before['component']}, and is {slot.name}"
        return
    if before["version"] != slot.version:
        yield f"version {before['version']} is now {slot.version}"
    now = orjson.loads(orjson.dumps(slot.options))
    changes = [*_changes(before["options"], now)]
    yield from changes[:_MOST]
    if len(changes) > _MOST:
        yield f"and {len(changes) - _MOST} more options"
    if not changes and before["version"] == slot.version:
        yield "its rubric or a file that it reads has another content"


def _changes(before: object, now: object, at: str = "") -> Iterator[str]:
    """Each option that differs, by its path, with both values."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            yield from _changes(before.get(key), now.get(key), f"{at}.{key}" if at else str(key))
    elif before != now:
        yield f"{at or 'its options'} was {_short(before)}, and is {_short(now)}"


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"
