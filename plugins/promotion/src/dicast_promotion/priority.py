"""``dicast priority``: what to improve next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, DataError, InputCheck, InputFile, Problem, identifier, nearest, one_line

from .factors import Factors

KEYS = tuple(field.name for field in attrs.fields(Factors))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there.")
def priority(file: Path, limit: int | None, as_json: bool) -> None:
    """Rank modules by how urgent a change is.

    What is called often, and fails, is slow, is dear, is old or has issues is urgent. FILE is JSON lines. A line has an id and of each module what is known: invocation_rate (calls a day), failure_rate (0 to 1), latency_ms,
    cost_msat, staleness_days, issues.
    """
    with InputFile.opened(file) as lines, InputCheck(lines) as check:
        found = list(_read(lines, check))
        check.finish(len(found))
    found.sort(key=lambda module: (-float(f"{module[1].priority:.12g}"), module[0]))  # but for rounding
    if as_json:
        data = [{"id": id, "priority": known.priority, "urgency": known.urgency} for id, known in found[:limit]]
        click.echo(orjson.dumps({"data": data}, option=orjson.OPT_INDENT_2))
        return
    for id, known in found[:limit]:
        why = sorted(known.urgency.items(), key=lambda item: -item[1])
        said = ", ".join(f"{name} {amount:.3g}" for name, amount in why if amount)
        click.echo(one_line(f"{known.priority:12,.3f}  {id}" + (f"  ({said})" if said else "")))


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
    """The id and the factors of a line.

    :raises RequestError: (without a place) saying what is wrong with it.
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
