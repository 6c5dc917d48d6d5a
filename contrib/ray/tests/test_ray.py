"""``ray/shards`` on a cluster of two nodes, in a network namespace of its own, because Ray rewrites 127.0.0.1.

All tests share the cluster. Its processes and its files are those of namespaces, too, so nothing of it outlives the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

import dicast
from dicast_ray import RayShards

FOLDER = Path(__file__).parent
NAMESPACE = """
ip link set lo up
ip addr add 10.255.0.1/32 dev lo
ip route add default dev lo src 10.255.0.1
mount --bind /dev/null /etc/resolv.conf
mount -t tmpfs tmpfs /mnt
exec "$@"
"""
SETTINGS = {
    "RAY_TMPDIR": "/mnt",  # short, as the paths of sockets have to be
    # Ray's own processes end on Python 3.14 if its deprecations are errors.
    "PYTHONWARNINGS": "",
}
PLUGIN = """
from __future__ import annotations
import asyncio, os
from pathlib import Path
from dicast import Classes, Cost, Metric, Score, Secret, Subject, hookimpl, metric

def log(path, text):
    with Path(path).open("a") as file:
        file.write(f"{text}\\n")

@metric(tier="truth", cost="0.01 usd")
async def paid(subject: Subject, *, journal: str, answers: str, seconds: float = 0.05) -> Score:
    "Buy an answer."
    log(journal, subject.id)
    await asyncio.sleep(seconds)
    log(answers, subject.id)
    return Score(int(subject.id) / 100, cost=Cost("0.01"))

@metric(tier="proxy")
def machine(subject: Subject, *, key: Secret, seen: str) -> Score:
    "Note the value of an option."
    log(seen, key.value)
    return Score(1.0)

@metric(tier="proxy")
def node(subject: Subject, *, seen: str) -> Score:
    "Note the node of Ray."
    import ray
    log(seen, ray.get_runtime_context().get_node_id())
    return Score(1.0)

@hookimpl
def dicast_metrics() -> Classes[Metric]:
    return [paid, machine, node]
"""
CONFORMANCE = """
import pytest, ray
from dicast.testing import ShardsConformance

@pytest.fixture(scope="module", autouse=True)
def connection():
    "All runs use the connection of the program, and the same workers."
    ray.init("ADDRESS", log_to_driver=False)
    yield
    assert ray.is_initialized()
    ray.shutdown()

class TestRay(ShardsConformance):
    executor = "ray/shards"
    options = {"address": "ADDRESS", "shard": 5}
"""
PAID = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [shop/paid: {journal: HERE/asked, answers: HERE/answered}]\n"


def namespace(*command):
    """Return *command* for a namespace without a way out; all of its processes end with the command, or with ``unshare``."""
    options = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    return ["unshare", *options, "sh", "-c", f"set -e\n{NAMESPACE}", "sh", *command]


def why_not():
    """Return the reason why no cluster can start here, or None."""
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "ip", "mount"))):
        return "two nodes of Ray need namespaces: Linux with unshare, ip and mount"
    done = subprocess.run(namespace("true"), capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no namespaces can be made: {done.stderr.strip()}"


class Nodes:
    """A cluster of two nodes, and the folder of the tests."""

    def __init__(self, folder, site):
        self.folder = folder
        self.documents = {}  # of runs in one process, by the text of the pipeline
        paths = [str(site), *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])]
        env = os.environ | SETTINGS | {"PYTHONPATH": os.pathsep.join(paths), "KEY": "of-the-worker"}
        command = namespace(sys.executable, str(FOLDER / "ray_cluster.py"))
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, text=True, env=env, cwd=folder, **streams)
        self.address = self.answer()

    def answer(self):
        """Return the next answer of the cluster."""
        line = self.process.stdout.readline()
        assert line, "the cluster has ended"
        return json.loads(line)

    def ask(self, **request):
        """Send a command to the cluster, and return its answer."""
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.answer()

    def start(self, *arguments, **env):
        """Start a command of dicast in the network of the cluster; return its pid."""
        return self.ask(run=[sys.executable, "-m", "dicast", *arguments], cwd=str(self.folder), env=env)

    def run(self, *arguments, **env):
        """Run a command of dicast in the network of the cluster; return its code and its output."""
        code, out, err = self.ask(wait=self.start(*arguments, **env))
        return code, out or err

    def write(self, name, text, options=""):
        """Write a pipeline that runs on the cluster; workers have other current folders, so HERE is this folder."""
        text = text.replace("HERE", str(self.folder))
        executor = f"executor: {{ray/shards: {{address: '{self.address}', shard: 10, concurrency: 2{options}}}}}\n"
        (self.folder / name).write_text(text + executor)

    def lines(self, name):
        """Return the lines of a file."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_lines(self, name, count, seconds=300):
        """Wait until a file has *count* lines."""
        end = time.monotonic() + seconds
        while len(self.lines(name)) < count:
            assert time.monotonic() < end, f"{name} has {len(self.lines(name))} of {count} lines"
            time.sleep(0.02)

    def end(self):
        """End the cluster with all of its processes."""
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A cluster of two nodes."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    site, folder = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("ray")
    info = site / "dicast_shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dicast-shop\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dicast]\nshop = dicast_shop\n")
    (site / "dicast_shop.py").write_text(dedent(PLUGIN))
    nodes = Nodes(folder, site)
    try:
        yield nodes
    finally:
        nodes.end()


@pytest.fixture
def rows(nodes):
    """Sixty rows in an empty folder; the commands of a failed test are ended."""
    nodes.ask(end=None)
    for path in nodes.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    rows = [{"id": str(n), "output": "x" * (n % 50)} for n in range(60)]
    (nodes.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return nodes


def settled(text):
    """Return a run's document without the parts that differ between two equal runs."""
    left_out = ("run_id", "ledger", "cost", "spend_lost", "warnings", "plan")
    return {key: value for key, value in json.loads(text).items() if key not in left_out}


def expect_whole(nodes, text, out):
    """Check that *out* is the document of a run in one process, and that the ledger has each subject and each purchase once."""
    if text not in nodes.documents:
        (nodes.folder / "whole.yaml").write_text("name: p\n" + text.replace("HERE", str(nodes.folder)))
        code, expected = nodes.run("run", "whole.yaml", "--ledger", "whole.db", "--json")
        assert code == 0, expected
        nodes.documents[text] = settled(expected)
    assert settled(out) == nodes.documents[text]
    code, exported = nodes.run("ledger", "export", "--ledger", "ledger.db")
    events = [json.loads(line) for line in exported.splitlines()]
    for type_ in ("subject.read", "eval.completed", "spend.settled"):
        ids = [event["subject_id"] for event in events if event["type"] == type_]
        assert len(ids) == len({*ids}) == (60 if "paid" in text or type_ != "spend.settled" else 0)
    assert nodes.run("ledger", "verify", "--ledger", "ledger.db")[0] == 0


@pytest.mark.slow
def test_a_run_on_the_cluster_equals_a_run_in_one_process(rows):
    text = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/length: {max: 20}]\ngate: {min_pass_rate: 0.2}\n"
    rows.write("p.yaml", text)
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--json")
    assert code == 0, out
    expect_whole(rows, text, out)
    assert not (rows.folder / "ledger.db.shards").exists()


@pytest.mark.slow
def test_the_shards_of_a_killed_node_are_continued_without_a_second_purchase(rows):
    rows.write("p.yaml", PAID)
    pid = rows.start("run", "p.yaml", "--ledger", "ledger.db", "--json")
    rows.wait_for_lines("answered", 15)
    rows.ask(kill=2)
    code, out, err = rows.ask(wait=pid)
    rows.ask(add=2)
    assert code == 0, err
    assert len(rows.lines("answered")) <= 60 + 2  # the calls that were open on the node
    assert {*rows.lines("answered")} == {str(n) for n in range(60)}
    expect_whole(rows, PAID, out)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_resumed(rows, number):
    rows.write("p.yaml", PAID)
    pid = rows.start("run", "p.yaml", "--ledger", "ledger.db", "--json")
    rows.wait_for_lines("answered", 15)
    rows.ask(signal=[pid, number])
    code, out, err = rows.ask(wait=pid)
    if number == signal.SIGINT:
        document = json.loads(out)
        assert (code, document["stopped"]["reason"]) == (130, "interrupted"), err
        assert 10 <= document["scored"] < 60
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--resume", "--json")
    assert code == 0, out
    assert len(rows.lines("answered")) <= 60 + 4  # the calls that were open in two workers
    expect_whole(rows, PAID, out)


@pytest.mark.slow
def test_secrets_are_read_where_the_workers_run(rows):
    text = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [shop/machine: {key: '${KEY}', seen: HERE/seen}]\n"
    rows.write("p.yaml", text)
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--json", KEY="of-the-driver")
    assert code == 0, out
    assert {*rows.lines("seen")} == {"of-the-worker"}
    rows.write("p.yaml", text.replace("${KEY}", "sk-written-in-the-file"))
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--json")
    assert code == 2
    assert "a value of it is a secret" in out
    assert "sk-written" not in out


@pytest.mark.slow
def test_tasks_run_on_machines_with_the_named_resources(rows):
    text = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [shop/node: {seen: HERE/seen}]\n"
    rows.write("p.yaml", text, ", resources: {sandbox: 1}")
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--json")
    assert code == 0, out
    assert len(rows.lines("seen")) == 60
    assert len({*rows.lines("seen")}) == 1
    rows.write("p.yaml", text, ", resources: {sandbox: 3}")
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--json")
    assert code == 2
    assert "no machine of the cluster has the resources sandbox: 3; start Ray there with --resources" in out


@pytest.mark.parametrize(
    ("resources", "message"),
    [({"sandbox": 0}, "a number above 0"), ({"sandbox": -1}, "a number above 0"), ({"CPU": 2}, "of Ray itself")],
)
def test_resources_that_are_none_are_refused(resources, message):
    with pytest.raises(dicast.ConfigError, match=message):
        RayShards(resources=resources)


@pytest.mark.slow
def test_conformance(rows):
    (rows.folder / "test_shards.py").write_text(CONFORMANCE.replace("ADDRESS", rows.address))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "", "test_shards.py"]
    env = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}  # the file imports Ray before dicast_ray can set it
    code, out, err = rows.ask(wait=rows.ask(run=command, cwd=str(rows.folder), env=env))
    assert code == 0, out + err


@pytest.mark.slow
def test_a_missing_cluster_is_named(rows):
    (rows.folder / "p.yaml").write_text(PAID + "executor: {ray/shards: {address: '10.255.0.1:1'}}\n")
    waits = {"RAY_NUM_REDIS_GET_RETRIES": "1", "RAY_py_gcs_connect_timeout_s": "1"}
    code, out = rows.run("run", "p.yaml", "--ledger", "ledger.db", "--json", **waits)
    assert code == 2
    assert "no Ray cluster at 10.255.0.1:1" in out


@pytest.mark.parametrize("option", ["shard", "workers", "concurrency"])
def test_a_number_below_1_is_refused(option):
    with pytest.raises(dicast.ConfigError, match="1 or more"):
        RayShards(**{option: 0})


@pytest.mark.slow
def test_ray_sends_no_usage_statistics(monkeypatch):
    import ray

    from dicast_ray import cluster

    seen = []

    def init(*arguments, **options):
        seen.append(
            {name: os.environ.get(name) for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_UV_RUN_RUNTIME_ENV")}
        )
        raise ConnectionError("enough")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")

    async def connect():
        async with cluster.connected("10.0.0.1:1"):
            pass

    with pytest.raises(dicast.ConfigError, match=r"no Ray cluster at 10\.0\.0\.1:1: enough\. .* RAY_AUTH_MODE=token"):
        asyncio.run(connect())
    assert seen == [{"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}]
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "1"
