"""Ledgers that are no path: URLs and components."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dicast import ConfigError
from dicast_serve.answers import Served
from dicast_serve.command import _shown, serve


def answer(place):
    done = CliRunner().invoke(serve, ["--ledger", place, "--once-json", "/runs?limit=2"], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_component_has_the_answers_of_its_file(ledger):
    assert answer(f"{{ledger/sqlite: {{path: {ledger}}}}}") == answer(str(ledger))


def test_the_default_is_the_ledger_in_the_environment(ledger, monkeypatch):
    monkeypatch.setenv("DICAST_LEDGER", f"ledger/sqlite: {{path: {ledger}}}")
    done = CliRunner().invoke(serve, ["--once-json", "/runs?limit=2"], catch_exceptions=False)
    assert done.stdout == answer(str(ledger))


def test_names_have_no_password():
    places = [Path("a/o.db"), "db://u:secret@host/team", "db://u:secret@host", "{db/ledger: {url: 'x:secret'}}"]
    assert [*Served.of(places).ledgers] == ["o", "team", "ledger", "ledger-2"]
    assert [*map(_shown, places)] == ["a/o.db", "db", "db", "db/ledger"]


def test_verdicts_of_people_need_a_file(ledger, tmp_path):
    place = f"ledger/sqlite: {{path: {ledger}}}"
    arguments = ["--ledger", place, "--label-token-file", str(tmp_path / "token")]
    with pytest.raises(ConfigError, match="--label-token-file: verdicts of people are recorded in files"):
        CliRunner().invoke(serve, arguments, catch_exceptions=False)
