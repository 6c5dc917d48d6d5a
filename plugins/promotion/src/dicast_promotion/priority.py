"""The command ``dicast priority``: the ranking of modules by urgency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, DataError, Problem, identifier, nearest
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.printable import one_line

from .factors import Factors

KEYS = tuple(field.name for field in attrs.fields(Factors))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Print only the first N modules.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def priority(file: Path, limit: int | None, as_json: bool) -> None:
    """Rank modules by the urgency of a change.

    A module is urgent if it is called often and fails, is slow, expensive or old, or has issues. FILE is JSON lines. A line has an id and any of invocation_rate (calls a day), failure_rate (0 to 1), latency_ms,
    cost_msat, staleness_days and issues.
    """
    with InputFile.opened(file) as lines, InputCheck(lines) as check:
        modules = list(_read(lines, check))
        check.finish(len(modules))
    modules.sort(key=lambda module: (-float(f"{module[1].priority:.12g}"), module[0]))  # equal up to rounding: by id
    if as_json:
        data = [{"id": id, "priority": factors.priority, "urgency": factors.urgency} for id, factors in modules[:limit]]
        click.echo(orjson.dumps({"data": data}, option=orjson.OPT_INDENT_2))
        return
    for id, factors in modules[:limit]:
        urgency = sorted(factors.urgency.items(), key=lambda item: -item[1])
        reasons = ", ".join(f"{name} {amount:.3g}" for name, amount in urgency if amount)
        click.echo(one_line(f"{factors.priority:12,.3f}  {id}" + (f"  ({reasons})" if reasons else "")))


def _read(lines: InputFile, check: InputCheck) -> Iterator[tuple[str, Factors]]:
    for number, record in lines.objects(check=check):
        try:
            module = _module(record)
        except (ConfigError, DataError) as error:
            lines.fault(DataError(error.problems), number, check)
            continue
        check.add_id(module[0], number)
        yield module


def _module(record: Mapping[str, Any]) -> tuple[str, Factors]:
    """Return the id and the factors of a line.

    :raises RequestError: if the id is not valid.
    :raises DataError: for unknown keys.
    """
    unknown = [
        Problem(f"unknown key {key!r}", path=key, value=key, hint=nearest(key, ("id", *KEYS)))
        for key in record
        if key not in ("id", *KEYS)
    ]
    if unknown:
        raise DataError(unknown)
    id = identifier(record.get("id"))
    return id, Factors(**{key: value for key, value in record.items() if key != "id"})
