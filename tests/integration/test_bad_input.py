"""Bad input: a clear message, exit code 2, and nothing written anywhere."""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import time

import pytest

from .conftest import finish

SINKS = "sinks: [csv/rows: {path: out.csv}, jsonl/events: {path: out.jsonl}]\n"


@pytest.fixture
def refused(shop):
    """Run a pipeline that must be refused as a wrong request, touching nothing; return its errors."""

    def run(*arguments, data=True):
        if data and not (shop / "data.jsonl").exists():
            shop.rows(1, 0.5)
        shop.write("out.csv", "as it was")
        before = sorted(os.listdir(shop.folder))
        plain = shop.dicast("run", *arguments)
        done = shop.dicast("run", *arguments, "--json")
        assert (plain.code, done.code) == (2, 2)
        assert plain.out == ""
        assert done.err == ""
        assert "Traceback" not in plain.err
        assert set(done.json) == {"error"}
        error = done.json["error"]
        assert set(error) == {"kind", "message", "errors"}
        assert error["message"] == plain.err.rstrip("\n")
        assert (shop / "out.csv").read_text() == "as it was"
        assert sorted(set(os.listdir(shop.folder)) - {".dicast"}) == before
        if (shop / ".dicast" / "ledger.db").exists():
            assert shop.events() == []
        return error

    return run


def places(error):
    return [(problem["line"], problem["column"]) for problem in error["errors"]]


# The file itself


def test_a_missing_file(refused):
    error = refused("missing.yaml")
    assert "missing.yaml" in error["message"]


def test_a_directory(refused, shop):
    (shop / "folder.yaml").mkdir()
    assert "folder.yaml" in refused("folder.yaml")["message"]


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", "---\n", "null\n"])
def test_an_empty_file(refused, shop, content):
    shop.write("p.yaml", content)
    error = refused("p.yaml")
    assert "p.yaml" in error["message"]
    assert error["errors"][0]["file"] == "p.yaml"


@pytest.mark.parametrize("content", ["[1, 2]\n", "just text\n", "12\n"])
def test_a_file_that_is_no_mapping(refused, shop, content):
    shop.write("p.yaml", content)
    assert places(refused("p.yaml")) == [(1, 1)]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("source: {rows/jsonl: {path: data.jsonl}\nmetrics: [fake/act]\n", (2, 1)),
        ("source:\n  rows/jsonl:\n\tpath: data.jsonl\n", (3, 1)),
        ("a: b: c\n", (1, 5)),
        ('name: "unclosed\n', None),
        ("name: @x\n", (1, 7)),
    ],
)
def test_yaml_that_does_not_parse(refused, shop, content, place):
    shop.write("p.yaml", content)
    error = refused("p.yaml")
    assert error["message"].startswith("p.yaml:")
    if place:
        assert places(error) == [place]


def test_duplicate_keys_are_refused_at_the_second(refused, shop):
    shop.pipeline("metrics: [fake/act]\nname: one\nmetrics: [fake/truth]\n")
    error = refused("p.yaml")
    assert places(error) == [(4, 1)]
    assert "metrics" in error["message"]


def test_a_file_that_is_not_utf8(refused, shop):
    shop.write("p.yaml", b"name: caf\xe9\n")
    assert "UTF-8" in refused("p.yaml")["message"]


def test_a_pipeline_with_bom_and_crlf_is_accepted(shop):
    shop.rows(1)
    text = "source: {rows/jsonl: {path: data.jsonl}}\nmetrics: [fake/act]\n"
    shop.write("p.yaml", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert shop.dicast("run", "p.yaml").code == 0


def test_an_alias_bomb_ends_quickly(refused, shop):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    shop.write("p.yaml", "\n".join(lines))
    began = time.process_time()
    assert "alias" in refused("p.yaml")["message"]
    assert time.process_time() - began < 5


def test_a_value_that_holds_itself(refused, shop):
    shop.write("p.yaml", "define: &d\n  x: *d\n")
    refused("p.yaml")


def test_deep_nesting_is_no_defect(refused, shop):
    shop.write("p.yaml", "name: " + "[" * 5000 + "]" * 5000)
    refused("p.yaml")


def test_an_include_that_includes_itself(refused, shop):
    shop.pipeline("include: p.yaml\nmetrics: [fake/act]\n")
    assert "include" in refused("p.yaml")["message"]


def test_a_missing_file_is_named_once_with_the_nearest(shop):
    shop.rows("1")
    shop.pipeline("metrics: [fake/act]\n")
    message = "pp.yaml: cannot read the file: No such file or directory, did you mean 'p.yaml'?\n"
    assert shop.dicast("run", "pp.yaml").err == message


def test_a_missing_include_points_at_it(refused, shop):
    shop.pipeline("metrics: [fake/act]\ninclude: gone.yaml\n")
    error = refused("p.yaml")
    assert places(error) == [(3, 10)]
    assert "gone.yaml" in error["message"]


# Sections, components, options


@pytest.mark.parametrize(
    ("text", "place", "path", "hint"),
    [
        ("metrics: [fake/act]\nscorring: {}\n", (3, 1), None, "scoring"),
        ("metrics: [fake/act]\nscoring: {treshold: 1}\n", (3, 11), "scoring", "threshold"),
        ("metrics: [fake/actt]\n", (2, 11), "metrics[0]", "fake/act"),
        ("metrics: [fakes/act]\n", (2, 11), "metrics[0]", "fake"),
        ("metrics: [fake/act: {jurnal: x}]\n", (2, 22), "metrics[0]", "journal"),
        ("metrics:\n  - fake/act:\n      wieght: 2\n", (4, 7), "metrics[0]", "weight"),
        ("metrics: [fake/act]\nsinks: [csv/rows: {paht: x}]\n", None, "sinks[0]", "path"),
        ("metrics: [fake/act]\nbudget: {runn: 1 usd}\n", (3, 10), "budget", "run"),
        ("metrics: [fake/act]\ngate: {min_scor: 1}\n", (3, 8), "gate", "min_score"),
        ("metrics: [fake/act]\nscoring: {aggregation: medan}\n", (3, 24), "scoring.aggregation", "median"),
        ("judges: [fake/opinion: {as: mine}]\ngate: {on: mini}\n", (3, 12), "gate.on", "mine"),
    ],
)
def test_a_misspelt_name_is_pointed_at_with_the_nearest(refused, shop, text, place, path, hint):
    shop.pipeline(text)
    error = refused("p.yaml")
    (problem,) = (problem for problem in error["errors"] if problem["hint"])
    assert problem["hint"] == hint
    assert f"did you mean {hint!r}?" in error["message"]
    assert problem["path"] == path
    assert problem["file"] == "p.yaml"
    if place:
        assert (problem["line"], problem["column"]) == place
        assert error["message"].startswith(f"p.yaml:{place[0]}:{place[1]}: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("metrics: fake/act\n", (2, 10)),
        ("metrics: [fake/act: 12]\n", None),
        ("metrics: [{fake/act: {}, fake/truth: {}}]\n", (2, 11)),
        ("metrics: [12]\n", (2, 11)),
        ("metrics: [fake/act: {weight: heavy}]\n", (2, 30)),
        ("metrics: [fake/act: {weight: '2'}]\n", (2, 30)),
        ("metrics: [fake/act: {weight: true}]\n", (2, 30)),
        ("metrics: [fake/act: {weight: -1}]\n", (2, 30)),
        ("metrics: [fake/act: {weight: .nan}]\n", (2, 30)),
        ("metrics: [fake/act: {weight: .inf}]\n", (2, 30)),
        ("metrics: [fake/act: {timeout: 0}]\n", (2, 31)),
        ("metrics: [fake/act: {retries: 1.5}]\n", (2, 31)),
        ("metrics: [fake/act: {range: [1, 0]}]\n", None),
        ("metrics: [fake/act: {journal: 12}]\n", (2, 31)),
        ("metrics: [fake/act: {on_failure: ignore}]\n", (2, 34)),
        ("metrics: [fake/act]\nscoring: {threshold: 1.5}\n", (3, 22)),
        ("metrics: [fake/act]\nscoring: {threshold: .nan}\n", (3, 22)),
        ("metrics: [fake/act]\nscoring: {rollouts: 0}\n", (3, 21)),
        ("metrics: [fake/act]\nscoring: {aggregation: {trimmed_mean: 51}}\n", None),
        ("metrics: [fake/act]\nscoring: {audit: {rate: 2}}\n", None),
        ("metrics: [fake/act]\nbudget: {run: 1}\n", (3, 15)),
        ("metrics: [fake/act]\nbudget: {run: 1 eur}\n", (3, 15)),
        ("metrics: [fake/act]\nbudget: {run: -1 usd}\n", (3, 15)),
        ("metrics: [fake/act]\nbudget: {run: nan usd}\n", (3, 15)),
        ("metrics: [fake/act]\nbudget: {run: [1 usd, 2 usd]}\n", None),
        ("metrics: [fake/act]\ngate: {min_score: 2}\n", (3, 19)),
        ("metrics: [fake/act]\ngate: {min_coverage: no}\n", (3, 22)),
        ("metrics: [fake/act]\nexecutor: {dicast/async: {concurrency: 0}}\n", None),
        ("metrics: [fake/act]\ndisabled: no\n", (3, 11)),
        ("metrics: [fake/act, fake/act]\n", None),
        ("metrics: {proxy: [fake/paid]}\n", None),
        ("metrics: [csv/rows: {path: x}]\n", None),
        ("metrics: [fake/act: {as: metrics}]\njudges: [fake/opinion: {as: metrics}]\n", None),
        ("metrics: [fake/act]\nname: 12\n", (3, 7)),
        ("metrics: [undefined_name]\n", (2, 11)),
    ],
)
def test_a_wrong_value_is_pointed_at(refused, shop, text, place):
    shop.pipeline(text)
    error = refused("p.yaml")
    problem = error["errors"][0]
    assert problem["file"] == "p.yaml"
    assert problem["line"] is not None
    assert problem["path"]
    if place:
        assert (problem["line"], problem["column"]) == place


def test_all_errors_come_at_once_in_the_order_of_the_file(refused, shop):
    shop.pipeline(
        "metrics:\n  - fake/act: {wieght: 1}\n  - fake/none\n  - proxy/length: {min: x}\n"
        "scoring: {threshold: 7, rolouts: 2}\nbudget: {run: cheap}\nsinks: [csv/row]\n"
    )
    error = refused("p.yaml")
    assert len(error["errors"]) == 7
    assert [problem["line"] for problem in error["errors"]] == [3, 4, 5, 6, 6, 7, 8]
    assert error["message"].count("\n") == 6


def test_no_source_is_an_error(refused, shop):
    shop.write("p.yaml", "metrics: [fake/act]\n")
    assert "source" in refused("p.yaml")["message"]


@pytest.mark.parametrize("text", ["name: idle\n", "metrics: []\n", "judges: []\n", "metrics: {proxy: []}\n"])
def test_nothing_to_judge_with_is_an_error(refused, shop, text):
    shop.pipeline(text)
    refused("p.yaml")


def test_check_lists_the_same_errors(shop):
    shop.pipeline("metrics: [fake/actt]\nscoring: {threshold: 7}\n")
    shop.rows(1)
    checked = shop.dicast("check", "p.yaml", "--json")
    run = shop.dicast("run", "p.yaml", "--json")
    assert (checked.code, run.code) == (2, 2)
    assert checked.json == {"ok": False, "errors": run.json["error"]["errors"]}
    assert set(checked.json["errors"][0]) == {"file", "line", "column", "path", "value", "message", "hint"}
    assert shop.dicast("check", "p.yaml").err == shop.dicast("run", "p.yaml").err
    assert os.listdir(shop.folder) == ["p.yaml", "data.jsonl"] or not (shop / ".dicast").exists()


@pytest.mark.parametrize(
    "override", ["scoring.treshold=1", "metrics.9.weight=1", "metrics.none.weight=1", "scoring", "=1"]
)
def test_an_override_of_nothing_is_an_error(refused, shop, override):
    shop.pipeline("metrics: [fake/act]\n")
    assert "--set" in refused("p.yaml", "--set", override)["message"]


def test_an_unset_variable_is_pointed_at(refused, shop, monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    shop.pipeline('metrics: [fake/act: {journal: "${NOT_SET}"}]\n')
    error = refused("p.yaml")
    assert places(error) == [(2, 31)]
    assert "NOT_SET" in error["message"]


# Data


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n\n", []),
        (b'{"id": "a", "output": 1}\n{"id": \n', [2]),
        (b'[1]\n"x"\n12\nnull\n{"output": 1}\n', [1, 2, 3, 4]),
        (b'{"id": "a", "output": 1}\n\n{"id": "a", "output": 1}\n', [3]),
        (b'{"id": "a", "output": 1}\n{"id": "\xff", "output": 1}\n', [2]),
        (b'{"id": null, "output": 1}\n', [1]),
        (b'{"id": {}, "output": 1}\n', [1]),
        (b'{"id": "a", "output": NaN}\n', [1]),
        (b'{"id": "a", "output": 1} trailing\n', [1]),
        (b'{"id": "a", "output": 1}\n{"id": "b", "output": %b%b}\n' % (b"[" * 300, b"]" * 300), [2]),
    ],
)
def test_bad_rows_are_named_by_line_before_the_first_call(refused, shop, content, lines):
    shop.write("data.jsonl", content)
    shop.pipeline("metrics: [fake/act: {journal: calls}]\n" + SINKS)
    error = refused("p.yaml", data=False)
    assert "data.jsonl" in error["message"]
    if lines:
        assert [problem["line"] for problem in error["errors"]] == lines
    assert not (shop / "calls").exists()


def test_the_first_100_bad_lines_are_named_and_all_are_counted(refused, shop):
    shop.write("data.jsonl", '{"id": "good", "output": 1}\n' + "bad\n" * 250)
    shop.pipeline("metrics: [fake/act]\n")
    error = refused("p.yaml", data=False)
    named = [problem["line"] for problem in error["errors"] if problem["line"] is not None]
    assert named == list(range(2, 102))
    assert "250" in error["message"] or "150" in error["message"]


def test_a_row_as_deep_as_may_be_read_is_recorded(shop):
    shop.write("data.jsonl", f'{{"id": "a", "output": 1, "deep": {"[" * 199}{"]" * 199}}}')
    assert shop.run("metrics: [fake/act]\nsinks: [jsonl/events: {path: out.jsonl}]\n").code == 0
    assert shop.events("subject.read")[0]["payload"]["content"]["context"]["deep"] != []
    assert (shop / "out.jsonl").read_bytes().count(b"[" * 199) == 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_data_with_bom_and_any_line_end_is_accepted(shop, end):
    shop.write("data.jsonl", b"\xef\xbb\xbf" + end.join([b'{"id": "a", "output": 1}', b"", b'{"output": 0.5}', b""]))
    assert shop.run("metrics: [fake/act]\n").code == 0
    assert [event["subject_id"] for event in shop.events("eval.completed")] == ["a", "3"]


def test_missing_data_is_pointed_at(refused, shop):
    shop.pipeline("source: {rows/jsonl: {path: gone.jsonl}}\nmetrics: [fake/act]\n")
    error = refused("p.yaml")
    assert "gone.jsonl" in error["message"]


def test_data_that_is_a_folder(refused, shop):
    (shop / "folder").mkdir()
    shop.pipeline("source: {rows/jsonl: {path: folder}}\nmetrics: [fake/act]\n")
    assert "folder" in refused("p.yaml")["message"]


def test_a_long_line_is_refused_by_its_number(refused, shop):
    shop.write("data.jsonl", [{"id": "a", "output": "x"}, {"id": "b", "output": "x" * 2000}])
    shop.pipeline("source: {rows/jsonl: {path: data.jsonl, max_line_bytes: 1000}}\nmetrics: [fake/act]\n")
    error = refused("p.yaml", data=False)
    assert [problem["line"] for problem in error["errors"]] == [2]
    assert "max_line_bytes" in error["message"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory of a child as Linux reports it")
def test_a_line_of_a_gigabyte_is_refused_without_being_held(shop):
    with open(shop / "data.jsonl", "wb") as file:
        file.write(b'{"id": "a", "output": "')
        file.truncate(10**9)
    shop.pipeline("metrics: [fake/act]\n")
    code = (
        "import sys\nfrom dicast._kernel.cli import main\ncode = main(['run', 'p.yaml', '--json'])\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=shop.folder, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 2
    assert "max_line_bytes" in json.loads(done.stdout)["error"]["message"]
    peak = int(done.stderr.split()[-1])  # of its own; that of getrusage begins with this process's
    assert peak < 300 * 1024  # KiB; the limit of a line is 64 MiB


def test_no_subjects_of_a_kind_that_anything_judges(shop):
    shop.rows(1)
    done = shop.run("judges: [fake/turns_only]\n")
    assert done.code in (2, 3)
    assert shop.events("eval.completed") == []


# Where things are written


def test_an_unwritable_sink_is_refused_before_anything_is_judged(refused, shop):
    shop.write("file", "not a folder")
    shop.pipeline("metrics: [fake/act: {journal: calls}]\nsinks: [csv/rows: {path: file/out.csv}]\n")
    assert "file/out.csv" in refused("p.yaml")["message"]
    assert not (shop / "calls").exists()


def test_two_sinks_on_one_file_are_refused(refused, shop):
    shop.pipeline("metrics: [fake/act]\nsinks: [csv/rows: {path: o.csv, as: a}, csv/rows: {path: ./o.csv, as: b}]\n")
    refused("p.yaml")


def test_a_sink_must_not_replace_its_source(refused, shop):
    shop.rows(1)
    before = (shop / "data.jsonl").read_bytes()
    shop.pipeline("metrics: [fake/act]\nsinks: [jsonl/events: {path: data.jsonl}]\n")
    refused("p.yaml")
    assert (shop / "data.jsonl").read_bytes() == before


def test_an_existing_file_is_kept_where_overwrite_is_off(refused, shop):
    shop.pipeline("metrics: [fake/act]\nsinks: [csv/rows: {path: out.csv, overwrite: false}]\n")
    assert "overwrite" in refused("p.yaml")["message"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("this is no database, but it is long enough to be read as one" * 10), "SQLite"),
        (lambda path: path.mkdir(), "folder"),
        (lambda path: _database(path, "CREATE TABLE mine (x)"), "not a dicast ledger"),
        (lambda path: _database(path, "PRAGMA application_id = 1684628321; PRAGMA user_version = 99"), "99"),
    ],
)
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(shop, make, message):
    shop.rows(1)
    path = shop / "mine.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    shop.write("out.csv", "as it was")
    done = shop.run("metrics: [fake/act: {journal: calls}]\nledger: {ledger/sqlite: {path: mine.db}}\n" + SINKS)
    assert done.code == 2
    assert message in done.json["error"]["message"]
    assert before == (path.read_bytes() if path.is_file() else None)
    assert (shop / "out.csv").read_text() == "as it was"
    assert not (shop / "calls").exists()
    for command in (["verdicts"], ["ledger", "verify"], ["show", "last"]):
        assert shop.dicast(*command, "--ledger", "mine.db").code == 2


def _database(path, script):
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def test_a_locked_ledger_is_refused_after_its_wait(shop):
    shop.rows(1)
    ledger = "ledger: {ledger/sqlite: {path: l.db, busy_timeout: 0.2}}\n"
    assert shop.run("metrics: [fake/act]\n" + ledger).code == 0
    connection = sqlite3.connect(shop / "l.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = shop.run("metrics: [fake/act: {journal: calls}]\n" + ledger)
    finally:
        connection.close()
    assert done.code == 2
    assert "locked" in done.json["error"]["message"]
    assert not (shop / "calls").exists()


@pytest.mark.slow
def test_two_runs_on_one_ledger_at_once_both_finish(shop):
    shop.rows(*[1] * 300)
    shop.pipeline("metrics: [fake/wait: {jitter: 0.01}]\nsinks: [csv/rows: {path: a.csv}]\n", "a.yaml")
    shop.pipeline("metrics: [fake/paid]\nbudget: {run: 10 usd, day: 100 usd}\n", "b.yaml")
    started = [shop.start("run", name, "--json") for name in ("a.yaml", "b.yaml")]
    done = [finish(process) for process in started]
    assert [item.code for item in done] == [0, 0]
    assert [item.json["scored"] for item in done] == [300, 300]
    assert shop.verified()
    runs = {event["run_id"] for event in shop.events()}
    assert runs == {item.json["run_id"] for item in done}
    for item in done:
        assert len(shop.dicast("verdicts", "--run", item.json["run_id"], "--json").json["verdicts"]) == 300


def _limited(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def _full_disk(size):
    """Keyword arguments of a process whose files cannot grow beyond *size* bytes, as on a full disk."""
    return {"preexec_fn": _limited(size)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_full_disk_under_the_ledger_is_4_and_the_run_can_be_taken_up(shop):
    chance = random.Random(7)
    shop.rows(*[{"score": 1, "text": chance.randbytes(250).hex()} for _ in range(3000)])
    shop.pipeline("metrics: [proxy/format]\nsinks: [csv/rows: {path: out.csv}]\n")
    done = shop.process("run", "p.yaml", "--json", **_full_disk(600_000))
    assert done.code == 4
    assert done.json["stopped"]["reason"] == "ledger_failed"
    assert shop.verified()
    resumed = shop.dicast("run", "p.yaml", "--resume", "--json")
    assert (resumed.code, resumed.json["scored"]) == (0, 3000)
    assert len((shop / "out.csv").read_text().splitlines()) == 3001


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_full_disk_under_a_sink_is_4_and_scoring_is_complete(shop):
    shop.rows(*["x" * 5000] * 300)
    shop.pipeline(
        "metrics: [proxy/format]\nledger: {ledger/sqlite: {path: l.db, content: digest}}\n"
        "sinks: [jsonl/events: {path: out.jsonl}, csv/rows: {path: out.csv}]\n"
    )
    done = shop.process("run", "p.yaml", "--json", **_full_disk(1_200_000))
    assert done.code == 4
    assert done.json["scored"] == 300
    assert done.json["sinks"]["jsonl/events"]["lost"] > 0
    assert done.json["sinks"]["csv/rows"] == {"written": 300, "lost": 0}
    assert len(shop.dicast("verdicts", "--ledger", "l.db", "--json").json["verdicts"]) == 300
    assert not (shop / "out.jsonl").exists() or (shop / "out.jsonl").stat().st_size <= 1_200_000
    assert not [name for name in os.listdir(shop.folder) if name.endswith(".tmp")]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full to write to")
@pytest.mark.parametrize("arguments", [["run", "p.yaml", "--json"], ["run", "p.yaml"], ["plugins"]])
def test_a_full_disk_under_standard_output_is_4(shop, arguments):
    shop.rows(1)
    shop.pipeline("metrics: [fake/act]\n")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dicast", *arguments],
            check=False, cwd=shop.folder, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 4
    assert "standard output" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
