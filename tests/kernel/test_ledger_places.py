"""``--ledger``: a path, a URL, or a component."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from dicast import ConfigError, PluginError, Query, Secret, read_ledger
from dicast._kernel.cli.group import dicast
from dicast._kernel.contract import registry
from dicast._kernel.contract.kinds import describe_component
from dicast._kernel.pipeline.ledger_path import ledger_place, printed_place, without_password
from dicast.commands import ledger_section
from dicast.testing import MemoryLedger


@attrs.frozen
class Remote:
    """A ledger that a URL names."""

    schemes = ("remote",)
    is_async_ledger = False
    books = {}

    url: str
    number: int = 1

    @asynccontextmanager
    async def open(self, run=None, create=True):
        async with self.books.setdefault(self.url, MemoryLedger()).open(run, create) as live:
            yield live


@pytest.fixture
def _remote(monkeypatch):
    """Offer the component ``remote/remote`` next to the installed plugins."""
    component = describe_component("ledger", Remote, "remote", "dicast-remote", "1")
    load, load_all = registry.Registry.load, registry.Registry.load_all
    plugin = registry.Plugin("remote", "dicast-remote", "1", "", "loaded", None, (component,))
    monkeypatch.setattr(
        registry.Registry, "load", lambda self, name: (component,) if name == "remote" else load(self, name)
    )
    monkeypatch.setattr(registry.Registry, "load_all", lambda self: {**load_all(self), "remote": plugin})
    monkeypatch.setattr(Remote, "books", {})


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ("a/b.db", True),
        ("ledger/sqlite", True),
        ("C:/x.db", True),
        ("-", True),
        ("remote://host/db", False),
        ("{ledger/sqlite: {path: x.db}}", False),
        ("ledger/sqlite: {path: x.db}", False),
    ],
)
def test_a_url_and_a_component_are_no_paths(text, is_path):
    assert ledger_place(text) == (Path(text) if is_path else text)


def run(tmp_path, monkeypatch, *arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n')
    pipeline = {"source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": ["proxy/format"]}
    (tmp_path / "p.yaml").write_text(json.dumps(pipeline))
    return CliRunner().invoke(dicast, [*arguments])


@pytest.mark.parametrize("place", ["other.db", "{ledger/sqlite: {path: other.db}}", "ledger/sqlite: {path: other.db}"])
def test_a_run_and_the_commands_use_the_ledger(place, tmp_path, monkeypatch):
    done = run(tmp_path, monkeypatch, "run", "p.yaml", "--ledger", place, "--json")
    assert done.exit_code == 0, done.output
    run_id = json.loads(done.stdout)["run_id"]
    assert (tmp_path / "other.db").exists()
    assert not (tmp_path / ".dicast").exists()
    listed = CliRunner().invoke(dicast, ["runs", "--ledger", place, "--json"])
    assert json.loads(listed.stdout)["runs"][0]["run_id"] == run_id
    monkeypatch.setenv("DICAST_LEDGER", place)
    assert read_ledger(None, lambda live: next(live.read(Query())).event.run_id) == run_id


@pytest.mark.usefixtures("_remote")
def test_a_url_names_the_ledger_with_its_scheme(tmp_path, monkeypatch):
    done = run(tmp_path, monkeypatch, "run", "p.yaml", "--ledger", "remote://host/db", "--json")
    assert done.exit_code == 0, done.output
    events = read_ledger("remote://host/db", lambda live: [entry.event.run_id for entry in live.read(Query())])
    assert {*events} == {json.loads(done.stdout)["run_id"]}


@pytest.mark.usefixtures("_remote")
def test_the_section_of_a_pipeline_is_made_of_a_place(monkeypatch):
    assert ledger_section(Path("a.db")) == {"ledger/sqlite": {"path": "a.db"}}
    assert ledger_section("remote://host") == {"remote/remote": {"url": "remote://host"}}
    assert ledger_section("ledger/sqlite: {path: b.db}") == {"ledger/sqlite": {"path": "b.db"}}
    monkeypatch.setenv("DICAST_LEDGER", "c.db")
    assert ledger_section(None) == {"ledger/sqlite": {"path": "c.db"}}
    monkeypatch.delenv("DICAST_LEDGER")
    assert ledger_section(None) == {"ledger/sqlite": {"path": str(Path(".dicast", "ledger.db"))}}


def test_a_url_is_refused_if_no_ledger_reads_urls(monkeypatch):
    monkeypatch.setattr(registry.Registry, "load_all", lambda self: {})
    with pytest.raises(ConfigError, match="--ledger: no ledger for nowhere://: no installed ledger reads URLs"):
        read_ledger("nowhere://x", lambda live: None)


@pytest.mark.usefixtures("_remote")
def test_a_misspelled_scheme_is_refused_with_the_right_one():
    with pytest.raises(ConfigError, match=r"installed ledgers read .*remote.*did you mean 'remote'"):
        read_ledger("remot://x", lambda live: None)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{ledger/sqlite: {pat: x.db}}", "did you mean 'path'"),
        ("{ledger/sqlit: {path: x.db}}", "did you mean 'ledger/sqlite'"),
        ("{proxy/format: {}}", "proxy/format"),
        ("{ledger/sqlite", "--ledger:2:1: not valid YAML"),
    ],
)
def test_a_fault_of_a_component_is_named(place, message):
    with pytest.raises((ConfigError, PluginError), match=message):
        read_ledger(place, lambda live: None)


def test_a_password_is_not_printed():
    assert without_password("remote://user:secret@host/db") == "remote://USER:PASSWORD@host/db"
    assert without_password(Path("a/b.db")) == "a/b.db"


@pytest.mark.usefixtures("_remote")
@pytest.mark.parametrize(
    ("variable", "is_printed"), [("remote://host/db", False), ("remote://other/db", True), ("", True)]
)
def test_printed_commands_leave_out_the_ledger_of_the_environment(variable, is_printed, tmp_path, monkeypatch):
    monkeypatch.setenv("DICAST_LEDGER", variable)
    done = run(tmp_path, monkeypatch, "run", "p.yaml", "--set", "ledger={remote/remote: {url: 'remote://host/db'}}")
    assert done.exit_code == 0, done.output
    assert ("--ledger remote://host/db" in done.output) is is_printed


@pytest.mark.usefixtures("_remote")
@pytest.mark.parametrize(
    ("place", "printed"),
    [
        ("remote://me:secret@host/db?token=secret", "remote://USER:PASSWORD@host/db"),
        ("{remote/remote: {url: 'remote://host/db'}}", "remote://host/db"),
        (
            "{remote/remote: {url: 'remote://me:secret@host/db', number: 2}}",
            """'{"remote/remote":{"url":"remote://USER:PASSWORD@host/db","number":2}}'""",
        ),
    ],
)
def test_the_next_commands_of_a_run_name_a_ledger_without_a_path(tmp_path, monkeypatch, place, printed):
    done = run(tmp_path, monkeypatch, "run", "p.yaml", "--ledger", place)
    details = next(line for line in done.output.splitlines() if line.startswith("details: "))
    assert details.endswith(f" --full --ledger {printed}")
    assert "secret" not in done.output
    shown = run(tmp_path, monkeypatch, "show", "last", "--ledger", place)
    assert details in shown.output.splitlines()


def test_a_ledger_with_other_options_is_printed_as_a_component_without_its_secrets():
    @attrs.frozen
    class Database:
        host: str
        password: Secret
        port: int = 5432
        schema: str | None = None

    assert printed_place("my/database", Database("db.example", Secret("hunter2"), schema="evals")) == (
        '{"my/database":{"host":"db.example","password":"***","schema":"evals"}}'
    )
