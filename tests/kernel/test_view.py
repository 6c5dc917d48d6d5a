"""``dicast view``: the newest report, else the dashboard."""

from __future__ import annotations

import json
import re

import pytest

from dicast._kernel.cli import main


@pytest.fixture
def opened(monkeypatch):
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
    return addresses


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "rows.jsonl").write_text(json.dumps({"id": "1", "output": "Ankara"}) + "\n")
    (tmp_path / "evals" / "run.yaml").write_text(
        "name: rows\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\n"
        "sinks: [report/html: {path: out/page.html}]\n"
        f"ledger: {{ledger/sqlite: {{path: {tmp_path / 'ledger.db'}}}}}\n"
    )
    monkeypatch.setenv("DICAST_LEDGER", str(tmp_path / "ledger.db"))
    assert main(["run", "evals/run.yaml"]) == 0
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    """Take the arguments of ``dicast serve`` instead of serving."""
    from dicast_serve.command import serve

    calls: list[list[str]] = []
    monkeypatch.setattr(serve, "main", lambda arguments, **_: calls.append(arguments))
    return calls


def test_the_report_that_the_newest_run_wrote_is_opened(folder, opened, capsys):
    capsys.readouterr()
    assert main(["view"]) == 0
    report = folder / "evals" / "out" / "page.html"
    assert opened == [report.as_uri()]
    done = capsys.readouterr()
    assert done.out == f"{report}\n"
    assert re.fullmatch(r"run \w{26} \(rows\)\n", done.err)


def test_a_file_is_opened_whichever_run_it_shows(folder, opened, served, monkeypatch):
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    monkeypatch.setenv("DICAST_LEDGER", str(folder / "none.db"))
    assert main(["view", "evals/out/page.html"]) == 0
    assert opened == [(folder / "evals" / "out" / "page.html").as_uri()]
    assert served == []


def test_no_open_prints_the_report_alone(folder, opened, capsys):
    capsys.readouterr()
    assert main(["view", "rows", "--no-open"]) == 0
    assert opened == []
    assert capsys.readouterr().out.endswith("page.html\n")


def test_a_report_from_before_the_newest_run_is_not_its_report(folder, opened, served):
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    assert main(["view"]) == 0
    assert opened == []
    assert served == [["--port", "0", "--open"]]


def test_a_report_that_was_written_later_by_hand_is_opened(folder, opened, served):
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    main(["report", "last"])
    assert main(["view"]) == 0
    assert opened == [(folder / "report.html").as_uri()]


@pytest.mark.parametrize("out", ["mine.html", "pages/mine.html", "far/away/mine.html", ".hidden/mine.html"])
def test_the_next_command_of_a_report_opens_it(folder, opened, served, capsys, out):
    (folder / out).parent.mkdir(parents=True, exist_ok=True)
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    (folder / "notes.html").write_text("<p>mine</p>")
    capsys.readouterr()
    main(["report", "last", "--out", out, "--ledger", "ledger.db"])
    next_ = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    assert main(next_.removeprefix("dicast ").split()) == 0
    assert opened == [(folder / out).as_uri()]


def test_the_next_command_of_a_second_report_opens_it_and_not_the_page_of_the_run(folder, opened, served, capsys):
    main(["run", "evals/run.yaml", "--set", "sinks=[]", "--out", "first.html"])
    capsys.readouterr()
    main(["report", "last", "--out", "second.html"])
    next_ = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    assert main(next_.removeprefix("dicast ").split()) == 0
    assert opened == [(folder / "second.html").as_uri()]


def test_a_page_that_compares_with_the_run_is_not_its_report(folder, opened, served, capsys):
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    capsys.readouterr()
    main(["runs", "--json"])
    newest, before, *_ = (run["run_id"] for run in json.loads(capsys.readouterr().out)["runs"])
    main(["report", newest, "--baseline", before, "--out", "both.html"])
    assert main(["view", newest]) == 0
    assert opened == [(folder / "both.html").as_uri()]
    main(["view", before])
    assert len(served) == 1


def test_a_report_of_another_run_is_not_taken(folder, opened, served):
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    main(["report", "rows"])
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    assert main(["view", "rows", "--ledger", "ledger.db", "--no-open"]) == 0
    assert served == [["--port", "0", "--ledger", "ledger.db"]]


def test_without_a_name_the_newest_page_is_opened_with_its_run_and_the_others(folder, opened, served, capsys):
    main(["report", "last", "--out", "first.html"])
    first = newest_id(capsys)
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    main(["report", "last", "--out", "pages/second.html"])
    second = newest_id(capsys)
    main(["run", "evals/run.yaml", "--set", "sinks=[]"])
    third = newest_id(capsys)
    (folder / "notes.html").write_text("<p>mine</p>")
    assert main(["view", "--no-open"]) == 0
    done = capsys.readouterr()
    assert done.out == f"{folder / 'pages' / 'second.html'}\n"
    assert done.err == (
        f"run {second} (rows); the newest run, {third}, has no report\n1 more report, such as: dicast view first.html\n"
    )
    assert first != second


def newest_id(capsys):
    capsys.readouterr()
    main(["runs", "--json"])
    return json.loads(capsys.readouterr().out)["runs"][0]["run_id"]


def test_serve_starts_the_dashboard_even_if_there_is_a_report(folder, opened, served):
    assert main(["view", "--serve"]) == 0
    assert len(served) == 1


def test_without_a_ledger_the_command_is_refused(tmp_path, monkeypatch, capsys, opened):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    assert main(["view"]) == 2
    assert "ledger" in capsys.readouterr().err


def test_a_report_of_more_than_16_mib_is_found(folder, opened):
    report = folder / "evals" / "out" / "page.html"
    with report.open("r+b") as file:
        file.truncate(20 * 2**20)
    assert main(["view"]) == 0
    assert opened == [report.as_uri()]
