"""The whole read of a source, as a run reads it: the check, then all subjects, with the default scan. ``python own_reader.py SOURCE PATH``.

It prints the CPU seconds after the imports, the peak memory of the process, and the number of subjects as JSON. SOURCE is ``MODULE:CLASS``;
``floor`` parses the same files once with ``json.loads`` (with the protobuf library for requests of OTLP).
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dicast.toolkit.scan import scanned


def read(source: str, path: Path) -> dict[str, Any]:
    """Return the figures of one read."""
    module, _, name = source.partition(":")
    made = getattr(importlib.import_module(module), name)(path=path)
    began = time.process_time()
    with made.reading() as opened:
        live = scanned(opened, "warn")
        live.check()
        subjects = sum(1 for _ in live.subjects())
        records = live.read_counts().records
    return {"cpu": time.process_time() - began, "subjects": subjects, "records": records}


def floor(path: Path) -> dict[str, Any]:
    """Return the figures of the bare parser."""
    files = sorted(file for file in (path.parent if path.is_file() else path).rglob("*") if file.is_file())
    began = time.process_time()
    count = sum(1 for file in files for _ in parsed(file))
    return {"cpu": time.process_time() - began, "subjects": count}


def parsed(file: Path) -> Iterator[Any]:
    """Yield the records of a file."""
    if file.suffix == ".binpb":
        from dicast_otel.readers.protobuf import delimited, parse_request

        with file.open("rb") as stream:
            yield from map(parse_request, delimited(stream, 2**26))
    elif file.suffix == ".jsonl":
        with file.open("rb") as lines:
            yield from map(json.loads, lines)
    else:
        yield json.loads(file.read_bytes())


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    figures = floor(where) if what == "floor" else read(what, where)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    print(json.dumps({**figures, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}))
