"""What users and other programs read stays as it is: documents, events, schema and components against files in ``tests/golden``.

``python tests/test_golden.py`` writes the files anew; a change to one of them is a change to what is promised.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from contextlib import chdir, redirect_stdout
from pathlib import Path

import pytest

import dicast
import dicast.testing
from dicast._kernel.cli import main

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).with_name("golden")
PIPELINES = sorted(path.relative_to(ROOT) for path in (ROOT / "examples").glob("*/*.yaml"))

ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
MEASURED = {"judge_latency_ms", "latency_ms"}
PROSE = {"summary", "docstring", "description", "version", "$comment"}
CHAINED = {"prev", "digest"}


def masked(text, folder):
    """*text* without what differs from run to run; ids are numbered in their order, so that references stay."""
    ids = {}
    text = ULID.sub(lambda found: f"id-{ids.setdefault(found[0], len(ids) + 1)}", text.replace(str(folder), "FOLDER"))
    return TIME.sub("TIME", text)


def plain(value, key=None):
    """*value* with every measured number as 0."""
    if isinstance(value, dict):
        return {name: plain(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return 0 if key in MEASURED and value is not None else value


def said(*arguments):
    """What ``dicast`` prints."""
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    with redirect_stdout(out):
        code = main([*map(str, arguments)])
    assert code == 0, written.getvalue()
    return written.getvalue().decode()


def unsaid(value):
    """*value* without the prose in it."""
    if isinstance(value, dict):
        return {name: unsaid(part) for name, part in value.items() if name not in PROSE or not isinstance(part, str)}
    return [unsaid(part) for part in value] if isinstance(value, list) else value


def lines(value):
    return json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n"


def of_example(pipeline):
    """An example's check, its run's document, and every event of it."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name).resolve()
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("out", ".dicast"))
        checked = json.loads(said("check", pipeline, "--json"))
        document = json.loads(said("run", pipeline, "--json"))
        document["ledger"]["head"]["digest"] = "DIGEST"
        rows = [json.loads(line) for line in said("ledger", "export").splitlines()]
        rows = [{name: part for name, part in row.items() if name not in CHAINED} for row in rows]
        events = "".join(json.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows)
        text = f"{lines(checked)}{lines(document)}{events}"
        return masked(text, folder)


def of_components():
    """Return every component of this repository with its options, without the prose about them."""
    projects = [tomllib.loads(path.read_text(encoding="utf-8")) for path in ROOT.glob("plugins/*/pyproject.toml")]
    own = {name for project in projects for name in project["project"]["entry-points"]["dicast"]}
    found = [plugin for plugin in json.loads(said("plugins", "--load", "--json"))["plugins"] if plugin["name"] in own]
    assert own == {plugin["name"] for plugin in found}
    return "".join(json.dumps(unsaid(component)) + "\n" for plugin in found for component in plugin["components"])


def of_schema():
    """The JSON Schema of the pipeline file."""
    return "".join(json.dumps([name, part]) + "\n" for name, part in parts(unsaid(json.loads(said("schema")))))


def parts(schema):
    """Its definitions, and the rest, one a line."""
    for section, found in schema.items():
        yield from (
            ((f"{section}.{name}", part) for name, part in found.items())
            if isinstance(found, dict)
            else [(section, found)]
        )


def of_names():
    """The public names."""
    return "\n".join([*sorted(dicast.__all__), "", *sorted(dicast.testing.__all__), ""])


MAKERS = {"components.jsonl": of_components, "schema.jsonl": of_schema, "names.txt": of_names} | {
    f"{pipeline.parent.name}-{pipeline.stem}.txt": lambda pipeline=pipeline: of_example(pipeline)
    for pipeline in PIPELINES
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_others_read_is_as_it_was(name, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("DICAST_")]:
        monkeypatch.delenv(variable)
    assert MAKERS[name]() == (GOLDEN / name).read_text(encoding="utf-8"), (
        f"if that is meant: python {Path(__file__).name}"
    )


def test_nothing_else_is_kept():
    assert {path.name for path in GOLDEN.iterdir() if path.is_file()} == set(MAKERS)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, make in MAKERS.items():
        (GOLDEN / name).write_text(make(), encoding="utf-8")
        print(name, file=sys.stderr)
