"""Reader of the file that ``dicast calibrate`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Judge, Problem
from dicast.toolkit.files import MAX_DATA_BYTES, error_reason, read_bytes

VERSION = 1

_HALF = 0.5
_NOISE = 1e-9
_MOST = 5


@attrs.frozen
class Calibrated:
    """A calibration: the rule by which a verdict agrees with its reference, and the results of each stage."""

    digest: str
    target: float
    alpha: float
    agree: str
    window: float | None
    pass_at: float | None
    stages: Sequence[Mapping[str, Any]]

    def disagree(self, score: float, reference: float) -> bool:
        """Return whether two scores disagree by the rule of the calibration."""
        if self.agree == "within":
            return abs(score - reference) > (self.window or 0.0) + _NOISE
        if self.agree == "winner":
            return _side(score) != _side(reference)
        line = _HALF if self.pass_at is None else self.pass_at
        return (score >= line) != (reference >= line)


def _side(score: float) -> float:
    return _HALF if score == _HALF else float(score > _HALF)


def read_document(path: Path) -> Calibrated:
    """Read the calibration in the file *path*.

    :raises ConfigError: if there is no such file, or it was changed after ``dicast calibrate`` wrote it.
    """
    try:
        data = orjson.loads(read_bytes(path, MAX_DATA_BYTES))
    except FileNotFoundError as error:
        message = f"no calibration at {path}: dicast calibrate FILE --gold GOLD --out {path} writes it"
        raise ConfigError(Problem(message, path="calibration", value=str(path))) from error
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(
            Problem(f"the calibration cannot be read: {error_reason(error)}", str(path), path="calibration")
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("stages"), list):
        message = "the file is not a calibration; dicast calibrate writes one"
        raise ConfigError(Problem(message, str(path), path="calibration"))
    rest = {key: value for key, value in data.items() if key != "digest"}
    if sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest() != data.get("digest"):
        message = "the file was edited or cut after dicast calibrate wrote it (digest); calibrate again"
        raise ConfigError(Problem(message, str(path), path="calibration"))
    if data.get("version") != VERSION:
        message = f"the calibration has version {data.get('version')!r}, this dicast reads {VERSION}; calibrate again"
        raise ConfigError(Problem(message, str(path), path="calibration"))
    return Calibrated(
        data["digest"],
        data["target"],
        data["alpha"],
        data["agree"],
        data["window"],
        data["pass_at"],
        tuple(data["stages"]),
    )


def answered(config: str, model: str | None) -> str:
    """Return the fingerprint of a stage with the component fingerprint *config*, for answers of *model*."""
    return sha256("\n".join((config, *([model] if model else ()))).encode()).hexdigest()


def check_stages(document: Calibrated, stages: Sequence[Judge], path: Path) -> None:
    """Check that *document* is a calibration of *stages*. The last stage has none, because it keeps every verdict.

    :raises ConfigError: with every difference.
    """
    if len(document.stages) != len(stages) - 1:
        message = f"the calibration has {len(document.stages)} steps and the cascade {len(stages) - 1}: calibrate this cascade"
        raise ConfigError(Problem(message, str(path), path="stages"))
    problems = []
    for record, stage in zip(document.stages, stages, strict=False):
        slot = getattr(stage, "slot", None)
        if slot is None:
            message = f"the stage {record['label']} has no fingerprint to compare with the calibration"
            problems.append(Problem(message, str(path)))
        elif slot.fingerprint != record["of"]["fingerprint"]:
            differences = "; ".join(_differences(record["of"], slot))
            message = (
                f"{record['label']} is not the calibrated judge: {differences}; calibrate again, or undo the change"
            )
            problems.append(Problem(message, str(path), path=slot.path))
    if problems:
        raise ConfigError(problems)


def _differences(before: Mapping[str, Any], slot: Any) -> Iterator[str]:
    """Yield the differences between a calibrated stage and *slot* in words."""
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
        yield "its rubric or one of its files has changed"


def _changes(before: object, now: object, at: str = "") -> Iterator[str]:
    """Yield each option that differs, with its path and both values."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            yield from _changes(before.get(key), now.get(key), f"{at}.{key}" if at else str(key))
    elif before != now:
        yield f"{at or 'its options'} was {_short(before)}, and is {_short(now)}"


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"
