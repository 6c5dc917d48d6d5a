"""A fingerprint covers everything that can change a score, files by their content, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import attrs
import pytest

from dicast import ConfigError, Event, PluginError
from dicast._kernel.contract.kinds import KINDS
from dicast._kernel.contract.registry import Registry
from dicast._kernel.pipeline import contents
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.pipeline.describe import describe
from dicast._kernel.resume.resume import EarlierRun, refuse_changes
from dicast._kernel.values import Entry

PLUGIN = """
from pathlib import Path

@attrs.frozen
class Asker:
    model: str = "m"
    patience: float = attrs.field(default=1.0, metadata={"counts": False})
    def complete(self, request): ...

@attrs.frozen
class Keeper:
    file: Path = attrs.field(metadata={"counts": False})
    inner: ChatModel | None = None
    said: str = "one"
    tier = "truth"
    def reads(self, base):
        assert base.is_dir()
        return {"file": self.file, "said": self.said} if self.said != "boom" else 1 / 0
    def score(self, subject): ...

@attrs.frozen
class Plain:
    words: int = 1
    tier = "truth"
    def score(self, subject): ...

@attrs.frozen
class Rows:
    def subjects(self): ...

@hookimpl
def dicast_models():
    return [Asker]
@hookimpl
def dicast_metrics():
    return [Keeper, Plain]
@hookimpl
def dicast_sources():
    return [Rows]
"""


@pytest.fixture
def build(plugin, tmp_path):
    plugin("f", PLUGIN)

    def built(metric, source="f/rows", **options):
        file = tmp_path / "p.yaml"
        file.write_text(f"source: {source}\nmetrics: [{metric}]\n")
        return load_pipeline(file, **options)

    return built


@pytest.fixture
def keeper(build, tmp_path):
    """The digests of a metric that reads the folder ``kept``."""

    def digests(options=""):
        made = build(f"f/keeper: {{file: kept{options}}}").metrics[0]
        return made.fingerprint, made.setup

    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.txt").write_text("one")
    return digests


def test_an_option_that_does_not_count_is_in_no_fingerprint_and_in_what_a_resume_is_held_to(keeper):
    made = [keeper(f", inner: {{f/asker: {options}}}") for options in ("{}", "{patience: 2}", "{model: n}")]
    fingerprints, setups = zip(*made, strict=True)
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
    assert len(set(setups)) == 3


def test_what_a_component_reads_counts_by_its_content(keeper, tmp_path):
    replies, result = tmp_path / "kept", [keeper()]

    def changed():
        result.append(keeper())
        return result[-1][0] != result[-2][0] and result[-1][1] != result[-2][1]

    assert not changed()
    (replies / "a.txt").write_text("two")
    assert changed()
    (replies / "a.txt").rename(replies / "b.txt")
    assert changed()
    (replies / "b.txt").chmod(0o755)
    assert changed()
    (replies / "sub").mkdir()
    assert changed()
    (replies / "sub" / "link").symlink_to("../b.txt")
    assert changed()
    (replies / "__pycache__").mkdir()
    (replies / "__pycache__" / "b.pyc").write_bytes(b"made of b")
    assert not changed()
    replies.rename(tmp_path / "other")
    (tmp_path / "kept").write_text("a file now")
    assert changed()
    assert keeper(", said: two") != keeper()


def test_a_folder_of_another_name_with_the_same_content_is_the_same(keeper, build, tmp_path):
    before = keeper()[0]
    (tmp_path / "kept").rename(tmp_path / "moved")
    assert build("f/keeper: {file: moved}").metrics[0].fingerprint == before


def test_what_several_components_read_is_read_once(build, tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("one")
    read, digest = [], contents.file_sha256
    monkeypatch.setattr(contents, "file_sha256", lambda path: read.append(path) or digest(path))
    made = build("f/keeper: {file: kept, as: a}, f/keeper: {file: kept, as: b}")
    assert len(made.metrics) == 2
    assert read == [tmp_path / "kept"]


def test_a_component_without_either_has_one_digest_for_both_as_it_had_before(build):
    (made,) = build("f/plain").metrics
    assert made.fingerprint == made.setup


def test_what_cannot_be_read_is_an_error_at_its_place(build):
    with pytest.raises(ConfigError, match="an input of f/keeper cannot be read: .*No such file") as caught:
        build("f/keeper: {file: gone}")
    assert (caught.value.problems[0].line, caught.value.problems[0].path) == (2, "metrics[0]")
    with pytest.raises(PluginError, match="f/keeper cannot list its inputs: ZeroDivisionError"):
        build("f/keeper: {file: gone, said: boom}")


def test_a_resume_is_refused_where_any_option_or_what_is_read_has_changed(build, keeper, tmp_path):
    def begun(pipeline, **options):
        message = {"fingerprints": pipeline.fingerprints, "setup": pipeline.setup, **options}
        event = Event("1", "run.started", "2026-01-01T00:00:00Z", "R", payload=message)
        return EarlierRun(Entry(1, event, "", ""), finished=False)

    patient = build("f/keeper: {file: kept, inner: {f/asker: {patience: 2}}}")
    earlier = begun(patient)
    refuse_changes(earlier, patient.setup)
    changed = build("f/keeper: {file: kept, inner: {f/asker: {patience: 3}}}")
    assert changed.fingerprints == patient.fingerprints
    with pytest.raises(ConfigError, match=r"metrics\[f/keeper\] has changed since"):
        refuse_changes(earlier, changed.setup)
    (tmp_path / "kept" / "a.txt").write_text("two")
    with pytest.raises(ConfigError, match=r"metrics\[f/keeper\] has changed since"):
        refuse_changes(earlier, build("f/keeper: {file: kept, inner: {f/asker: {patience: 2}}}").setup)
    old = begun(plain := build("f/plain"))
    del old.payload["setup"]  # of a ledger of before there was one
    refuse_changes(old, plain.setup)


# The components that are installed


PAID = "{input_per_mtok: 1, output_per_mtok: 2}"


@pytest.mark.parametrize(
    ("item", "other"),
    [
        ("openai/chat: {base_url: 'http://h/v1', model: m, price: free}", f"openai/chat: {{base_url: 'http://h/v1', model: m, price: {PAID}, timeout: 5, requests_per_minute: 9, tokens_per_minute: 99, retries: 0, cache_control: true}}"),
        ("openai/chat: {base_url: 'http://h/v1', model: m, price: free}", "openai/chat: {base_url: 'http://h/v1', model: m, price: free, api_key: k, proxy: 'http://p'}"),
        ("litellm/chat: {model: m, price: free}", f"litellm/chat: {{model: m, price: {PAID}, timeout: 5, requests_per_minute: 9, tokens_per_minute: 99, retries: 0, api_key: k}}"),
        ("cache/chat: {path: a.db, model: {litellm/chat: {model: m, price: free}}}", "cache/chat: {path: b.db, model: {litellm/chat: {model: m, price: free, timeout: 5}}}"),
    ],
)  # fmt: skip
def test_how_fast_how_patient_and_at_which_price_a_model_answers_changes_no_fingerprint(build, item, other):
    made = [build(f"llm/judge: {{criteria: [good], model: {{{model}}}}}").metrics[0] for model in (item, other)]
    assert made[0].fingerprint == made[1].fingerprint
    assert made[0].setup != made[1].setup


def test_the_model_that_is_asked_and_how_changes_the_fingerprint(build):
    base = "base_url: 'http://h/v1', model: m, price: free"
    options = ("", ", temperature: 1", ", response_format: text", ", headers: {X-Variant: a}")
    made = {
        build(f"llm/judge: {{model: {{openai/chat: {{{base}{extra}}}}}}}").metrics[0].fingerprint for extra in options
    }
    assert len(made) == len(options)


def commit(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a").write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", text]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def write(folder: Path, text: str) -> None:
    for name in ("tool.py", "tool.sh", "recording.jsonl", "pack/tool.py", "template/a.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tool.sh").chmod(0o755)


READING = {
    "template": "sandbox/command: {command: 'true', template: template, unsafe: true, backend: sandbox/none}",
    "script of the host": "sandbox/command: {command: 'python3 FOLDER/tool.py', unsafe: true, backend: sandbox/none}",
    "recording": "llm/judge: {model: {replay/chat: {path: recording.jsonl}}}",
}
TASKS = {
    "words": "[python3, tool.py, --out, made.txt]",
    "path": "./tool.sh",
    "shell": "cd . && X=1 python3 -u tool.py < pack/data > made.txt",
    "module": "[python3, -m, pack.tool]",
}


@pytest.mark.parametrize("metric", READING.values(), ids=READING)
def test_a_metric_that_reads_something_else_has_another_fingerprint(build, tmp_path, metric):
    values = []
    for text in ("1", "1", "2"):
        write(tmp_path, text)
        values.append(build(metric.replace("FOLDER", str(tmp_path))).metrics[0].fingerprint)
    assert values[0] == values[1] != values[2]


def test_a_metric_at_another_commit_of_a_repository_has_another_fingerprint(build, tmp_path):
    def made():
        metric = "sandbox/tests_pass: {command: 'true', repository: r, unsafe: true, backend: sandbox/none}"
        return build(metric).metrics[0].fingerprint

    commit(tmp_path / "r", "1")
    before = made()
    (tmp_path / "r" / "a").write_text("not committed")
    assert made() == before
    commit(tmp_path / "r", "2")
    assert made() != before


@pytest.mark.parametrize("command", TASKS.values(), ids=TASKS)
def test_a_task_with_another_script_has_another_fingerprint_and_what_the_script_writes_does_not_count(
    plugin, tmp_path, command
):
    values = []
    for text in ("1", "1", "2"):
        write(tmp_path, text)
        (tmp_path / "made.txt").write_text(str(len(values)))
        file = tmp_path / "p.yaml"
        file.write_text(
            f"source: {{rows/jsonl: {{path: recording.jsonl}}}}\ntask: {{task/command: {{command: {command}}}}}\n"
        )
        values.append(load_pipeline(file).task.fingerprint)
    assert values[0] == values[1] != values[2]


@pytest.mark.slow
def test_two_runs_with_another_script_differ_in_their_task(tmp_path, monkeypatch):
    import dicast

    monkeypatch.chdir(tmp_path)
    write(tmp_path, "print('gold')")
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "reference": "gold"}\n')
    pipeline = {
        "name": "n", "source": {"rows/jsonl": {"path": "rows.jsonl"}}, "task": {"task/command": {"command": ["python3", "tool.py"]}},
        "metrics": ["diff/match"], "baseline": {"run": "last", "compare": ["stats/paired"]},
    }  # fmt: skip
    dicast.run({key: value for key, value in pipeline.items() if key != "baseline"})
    assert dicast.run(pipeline).baseline["differs"] == []
    (tmp_path / "tool.py").write_text("print('lead')")
    assert dicast.run(pipeline).baseline["differs"] == ["task"]


JUDGED = {
    **dict.fromkeys(("timeout", "requests_per_minute", "tokens_per_minute", "price", "api_key", "proxy"), False),
    **dict.fromkeys(("unreachable_at_start", "unreachable_later"), False),
    **dict.fromkeys(("retries", "concurrency", "threads", "parallel", "cache_control", "unsafe"), False),
    **dict.fromkeys(("security_level", "determinism_level", "capture_rationale"), False),
}
"""Options that only say how fast, how patient or at which price, whatever has them, or what is kept of it."""

COUNTS_ALL_THE_SAME = {
    ("sandbox/command", "timeout"): "a candidate that takes longer scores 0",
    ("sandbox/tests_pass", "timeout"): "a candidate that takes longer scores 0",
    ("sandbox/verification_delta", "timeout"): "a candidate that takes longer scores 0",
    ("llm/judge", "retries"): "another reply is judged by",
    ("llm/pairwise", "retries"): "another reply is judged by",
    ("prompt/chat", "retries"): "another reply is the output",
    ("evaluator/judge", "retries"): "another reply is judged by",
    ("evaluator/rubric", "retries"): "another reply is judged by",
    ("rag/answer_relevance", "retries"): "another reply is judged by",
    ("rag/context_precision", "retries"): "another reply is judged by",
    ("rag/context_recall", "retries"): "another reply is judged by",
    ("rag/faithfulness", "retries"): "another reply is judged by",
    ("rag/noise_sensitivity", "retries"): "another reply is judged by",
    ("agent/argument_correctness", "retries"): "another reply is judged by",
    ("agent/plan_quality", "retries"): "another reply is judged by",
    ("agent/policy_adherence", "retries"): "another reply is judged by",
    ("agent/task_completion", "retries"): "another reply is judged by",
    ("agent/tool_correctness", "retries"): "another reply is judged by",
}
"""Options of such a name that can change a number."""

READ_OTHERWISE = {
    "check/assertions": "by reads()", "check/python": "by reads()", "check/javascript": "by reads()", "llamacpp/chat": "by reads()", "replay/chat": "by reads()", "sandbox/command": "by reads()", "sandbox/tests_pass": "by reads()",
    "sandbox/verification_delta": "by reads()", "sandbox/bubblewrap": "mounts are what machines have, and count by name",
    "evaluator/command": "by reads()", "evaluator/worker": "by reads()", "evaluator/rubric": "by reads()", "evaluator/metric_lines": "by reads()", "cache/chat": "replies are those of its model", "proxy/tool_params_schema": "read when it is made",
    "hybrid/cascade": "by reads()", "trajectory/match": "by reads()", "trajectory/tool_correctness": "by reads()", "diff/entails": "by reads()", "stats/paired": "a comparison is in no fingerprint",
}  # fmt: skip
"""Components that have options for paths and are no sources: these digest what they read as ``data``."""


def test_every_option_of_every_installed_component_has_been_judged():
    offered = [item for plugin in Registry().load_all().values() for item in plugin.components or ()]
    offered = [item for item in offered if item.distribution.startswith("dicast")]
    assert len(offered) > 50
    beside = ("sink", "ledger", "executor")  # in no fingerprint
    for item in (item for item in offered if item.kind in KINDS and item.kind not in beside):
        for field in (field for field in attrs.fields(item.cls) if field.init):
            counts = field.metadata.get("counts", True)
            if field.name in JUDGED:
                assert counts == ((item.name, field.name) in COUNTS_ALL_THE_SAME), (item.name, field.name)
            if "Path" in str(field.type) and item.kind != "source":
                assert item.name in READ_OTHERWISE, (item.name, field.name)
                assert hasattr(item.cls, "reads") == ("reads()" in READ_OTHERWISE[item.name]), item.name
            if item.kind == "source" and "Path" in str(field.type):
                assert hasattr(item.cls, "check") or hasattr(item.cls, "open"), item.name


def test_an_option_that_came_later_counts_only_where_it_is_set():
    @attrs.frozen
    class Before:
        words: str = "a"

    @attrs.frozen
    class After:
        words: str = "a"
        mode: str | None = attrs.field(default=None, metadata={"later": True})

    assert describe(After(), {}, {}) == describe(Before(), {}, {}) == {"words": "a"}
    assert describe(After(mode="b"), {}, {}, counting=True) == {"words": "a", "mode": "b"}
