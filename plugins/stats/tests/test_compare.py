"""``dicast compare`` on runs of a task, on runs that judge files, and on a file of records."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Judgment, LedgerRefused, RequestError, Results, Subject
from dicast.reporting import pair_passes, pass_counts
from dicast.testing import run_pipeline
from dicast.toolkit.terminal import plain_lines
from dicast_stats.compare.command import compare
from dicast_stats.compare.comparisons import COMPARISONS
from dicast_stats.compare.flips import list_flips
from dicast_stats.compare.lines import lines
from dicast_stats.compare.pair import Pair

ANSWER = """
import json, sys
row, style = json.load(sys.stdin), sys.argv[1]
score = {"plain": row["input"], "warm": row["input"] + 0.25 * (row["id"] != "3")}[style]
criteria = {"clear": score, "kind": score / 2}
print(json.dumps({"responses": {name: {"content": json.dumps({"score": score})} for name, score in criteria.items()}}))
"""


def pipeline(name, style, **options):
    return {
        "name": name,
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "task": {"task/command": {"command": [sys.executable, "answer.py", style]}},
        "extractors": [{"score_extractor/scores": {"threshold": 0.5}}],
        **options,
    }


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """Return a folder whose ledger has a run of each style, and one over files."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs")
        patch.chdir(folder)
        rows = [{"id": str(number), "input": score} for number, score in enumerate((0.125, 0.375, 0.5, 0.75, 1))]
        (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (folder / "answer.py").write_text(ANSWER)
        dicast.run(pipeline("plain", "plain", sinks=[{"jsonl/rows": {"path": "plain.jsonl"}}]))
        dicast.run(pipeline("warm", "warm", baseline={"run": "plain", "compare": ["stats/paired"]}))
        dicast.run(pipeline("other", "warm", extractors=[{"score_extractor/scores": {"threshold": 0.75}}]))
    return folder


@pytest.fixture
def ask(run_folder, monkeypatch):
    monkeypatch.chdir(run_folder)

    def ask(*arguments):
        return CliRunner(catch_exceptions=False).invoke(compare, arguments, catch_exceptions=False).output

    return ask


def document(ask, *arguments):
    return json.loads(ask(*arguments, "--json"))


def test_runs_that_differ_in_the_task_alone_are_compared(ask):
    result = document(ask, "plain", "warm")
    assert (result["comparable"], result["differs"]) == (True, ["task"])
    names = ["stats/paired", "stats/significance", "stats/cliffs_delta", "stats/score_delta"]
    assert list(result["comparisons"]) == names
    assert result["comparisons"]["stats/score_delta"]["criteria"] == pytest.approx({"clear": 0.2, "kind": 0.1})
    paired = result["comparisons"]["stats/paired"]["criteria"]["clear"]
    assert (paired["n_pairs"], paired["passes_gained"], paired["passes_lost"]) == (5, 1, 0)


def test_the_comparison_of_a_run_with_its_baseline_is_the_same(ask, run_folder):
    comparisons = document(ask, "plain", "warm", "--compare", "stats/paired")["comparisons"]
    run = dicast.run(pipeline("warm", "warm", baseline={"run": "plain", "compare": ["stats/paired"]}))
    assert run.comparison == comparisons


def compared_words(tmp_path, monkeypatch, metrics, **sections):
    """Return the lines that compare a run over ``yes`` with a run over other numbers of ``no``."""
    monkeypatch.chdir(tmp_path)
    for name, changed in (("old", 0), ("new", 9)):
        rows = [
            {"id": f"{number}{'x' * 90}", "output": "no " * (number < changed) + f"word{number}"}
            for number in range(10)
        ]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        dicast.run({"name": name, "source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": metrics, **sections})
    return CliRunner().invoke(compare, ["old", "new"], catch_exceptions=False).output.splitlines()


def test_changed_subjects_are_named_for_two_labels_and_the_others_are_counted(tmp_path, monkeypatch):
    forbidden = [{"proxy/keywords": {"as": f"m{number}", "forbidden": [f"no word{number}"]}} for number in range(9)]
    lines = compared_words(tmp_path, monkeypatch, forbidden)
    failing = [line for line in lines if "newly failing" in line]
    assert len(failing) == 2
    assert all("…" in line for line in failing)
    assert any(line.startswith("+ ") and line.endswith(" more labels with changed subjects") for line in lines)


def test_labels_with_equal_figures_share_their_lines(tmp_path, monkeypatch):
    metrics = [
        "proxy/format",
        {"check/regex": {"as": "correct", "pattern": "^word"}},
        {"check/contains": {"as": "same", "value": "w", "weight": 0}},
    ]
    lines = compared_words(tmp_path, monkeypatch, metrics, scoring={"combine": "truth"})
    text = " ".join(lines)
    assert text.count("newly failing") == 1
    assert "metrics, correct: 9 newly failing" in text
    assert text.count("10 to 1 of 10 pass") == 1
    assert lines[0].startswith("metrics, correct: worse")
    assert "proxy/format, same: " in text
    other = compared_words(tmp_path, monkeypatch, [*metrics, {"check/equals": {"as": "none", "value": "x"}}])
    assert not any(line.startswith("metrics, correct") for line in other), "the means differ"


def test_the_command_for_details_names_the_ledger(ask):
    option = "--ledger=.dicast/ledger.db"
    assert ask("plain", "warm", option).splitlines()[-1].endswith(" --full --ledger .dicast/ledger.db")
    assert ask("plain", "warm").splitlines()[-1].endswith(" --full")


@pytest.mark.parametrize(
    "arguments",
    [
        ("saved file.json", "warm", "--margin", "0.1"),
        ("plain.jsonl", "plain", "--allow-incomparable"),
        ("plain", "warm", "--unweighted"),
    ],
)
def test_the_command_for_details_repeats_the_sides_and_the_options(ask, run_folder, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(run_folder, tmp_path / "copy"))
    save = [sys.executable, "-m", "dicast", "baseline", "save", "saved", "plain", "--file", "saved file.json"]
    subprocess.run(save, check=True, capture_output=True)
    names, options = arguments[:2], arguments[2:]
    program, command, *words = shlex.split(" ".join(ask(*arguments).partition("details: ")[2].split()))
    assert (program, command, words) == ("dicast", "compare", [*names, "--full", *options])
    assert ask(*words) == ask(*arguments, "--full")


def test_the_command_for_details_pins_the_newest_run_by_its_id(ask):
    newest = document(ask, "plain", "last", "--allow-incomparable")["b"]["run_id"]
    command = ask("plain", "last", "--allow-incomparable").splitlines()[-1]
    assert command == f"details: dicast compare plain {newest[-6:]} --full --allow-incomparable"


def test_each_criterion_has_its_sentence_in_the_text(ask):
    text, result = (
        ask("plain", "warm", "--compare", "paired"),
        document(ask, "plain", "warm")["comparisons"]["stats/paired"],
    )
    for criterion in ("clear", "kind"):
        assert text.splitlines().count(f"{criterion}: {result['criteria'][criterion]['words']}") == 1
    assert text.splitlines()[:2] == result["sentences"]
    assert result["words"] == ". ".join(result["sentences"])


def test_a_single_criterion_has_its_sentence_once(results):
    first, second = results({"a": [0.1, 0.2, 0.3]}), results({"a": [0.4, 0.6, 0.7]})
    result = Pair(first, second).document(["stats/paired"])
    text = plain_lines(lines(first, second, result)).splitlines()
    assert [line for line in text if "better" in line] == [result["words"]]


def test_a_scale_that_does_not_fit_is_reported_and_can_be_set(ask):
    for name, options in (("flips", "pass_at, fail_at and major"), ("practical", "success_threshold and threshold")):
        criteria = document(ask, "plain", "warm", "--compare", name)["comparisons"][f"stats/{name}"]["criteria"]
        end = f"; all scores are from 0 to 1, which is another scale: set the options {options}"
        assert criteria["kind"]["words"].endswith(end)
        assert "all scores" not in criteria["clear"]["words"]  # some of them are above 1
    choice = json.dumps({"flips": {"pass_at": 0.5, "fail_at": 0.49}})
    comparisons = document(ask, "plain", "warm", "--compare", choice, "--compare", "paired")["comparisons"]
    assert list(comparisons) == ["stats/flips", "stats/paired"]
    assert (
        comparisons["stats/flips"]["criteria"]["clear"]["fail_to_pass"]
        == comparisons["stats/paired"]["criteria"]["clear"]["passes_gained"]
        == 1
    )
    few = document(ask, "plain", "warm", "--compare", '{"stats/paired": {"min_samples": 9}}')["comparisons"][
        "stats/paired"
    ]
    assert few["criteria"]["clear"]["reasons"] == {"n_pairs": "5 of the 9 needed", "n_pass_pairs": "5 of the 9 needed"}


def test_referees_can_be_asked_for(ask):
    result = document(ask, "plain", "warm", "--compare", '{"referee_alignment": {"referee_fields": ["input"]}}')
    assert result["comparisons"]["stats/referee_alignment"]["n"] == 5
    with pytest.raises(ConfigError, match=r"stats/referee_alignment needs options: --compare '\{.*referee_fields"):
        ask("plain", "warm", "--compare", "referee_alignment")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ('{"flips": {"pass_att": 0.5}}', "pass_at"),
        ('{"flips": {"pass_at": 1}}', "fail_at is 2; it has to be below pass_at, 1"),
        ('{"flops": {}}', "did you mean 'flips'"),
        ('{"flips": 3}', "flips"),
        ("{flips}", "not a JSON object of one comparison"),
        ('{"flips": {}, "bayes": {}}', "not a JSON object of one comparison"),
    ],
)
def test_wrong_options_of_a_comparison_are_refused(ask, choice, message):
    with pytest.raises(RequestError, match=re.escape(message)):
        ask("plain", "warm", "--compare", choice)


def test_flips_are_listed_by_label(ask):
    flips = document(ask, "plain", "warm", "--compare", "paired")["flips"]
    clear = {
        "subject_kind": "row",
        "subject_id": "1",
        "a": False,
        "b": True,
        "label": "clear",
        "score_a": 0.375,
        "score_b": 0.625,
    }
    assert flips == [clear]
    other = document(ask, "warm", "plain")["flips"]
    assert [(entry["subject_id"], entry["a"], entry["b"]) for entry in other] == [("1", True, False)]


def test_runs_that_differ_in_more_are_refused_unless_allowed(ask):
    with pytest.raises(
        ConfigError,
        match=r"more than the task and the outputs: extractors\[score_extractor/scores\] \(threshold: .*\); --allow-incomparable",
    ):
        ask("plain", "other")
    result = document(ask, "plain", "other", "--allow-incomparable")
    assert (result["comparable"], result["differs"]) == (False, ["extractors[score_extractor/scores]", "task"])
    text = ask("plain", "other", "--allow-incomparable")
    assert (
        "with 95 % intervals; they differ in\n  extractors[score_extractor/scores], task\nNOT COMPARABLE: extractors[score"
        in text
    )


def test_a_file_of_records_does_not_say_how_it_was_made(ask):
    with pytest.raises(ConfigError, match="a file of records has no fingerprints"):
        ask("plain.jsonl", "warm")
    result = document(ask, "plain.jsonl", "warm", "--allow-incomparable")
    paired = result["comparisons"].pop("stats/paired")
    comparisons = document(ask, "plain", "warm")["comparisons"]
    runs = comparisons.pop("stats/paired")
    assert result["comparisons"] == comparisons
    for answer in paired["answers"].values():
        assert answer.pop("faults") == [
            "a file of records has no fingerprints; judge the baseline again, in the same way"
        ]
    identical = [{answer.pop("identical") for answer in side["answers"].values()} for side in (paired, runs)]
    assert identical == [{0}, {1}]  # a file has no outputs to compare
    assert all(paired[part] == runs[part] for part in ("criteria", "sentences", "answers"))


@pytest.mark.parametrize("arguments", [("plain", "worm"), ("plain", "warm", "--compare", "piared")])
def test_a_name_that_is_not_known_is_refused_with_the_nearest(ask, arguments):
    with pytest.raises(RequestError, match="did you mean '(warm|paired)'"):
        ask(*arguments)


def test_the_text_has_n_intervals_and_effect_sizes_next_to_every_p(ask):
    text = ask("plain", "warm", "--full")
    for head in ("pairs", "interval", "bootstrap", "effect", "Wilcoxon", "McNemar", "adjusted", "delta"):
        assert head in text
    assert max(map(len, text.splitlines())) <= 80
    assert "clear: 1 pass in B alone, 0 in A alone, of 5" in text
    assert "  in B alone: 1  0.3750 -> 0.6250" in text
    shown = [line for line in text.splitlines() if ": dicast show 1 --run " in line]
    assert [line.partition(" (")[0] for line in shown] == ["in A", "in B"]
    assert "kind: no subject passes in one run and not in the other, of 5" in text
    assert "clear: no subject passes in one run and not in the other, of 5" in ask(
        "plain.jsonl", "plain", "--allow-incomparable", "--full"
    )


def test_a_comparison_begins_with_a_sentence_with_an_interval_for_each_label(ask):
    """Five pairs; one of them does not differ."""
    words = [
        "clear: better: warm is ahead, +0.20, 95 % interval 0.06 to 0.34, over 5 pairs",
        "kind: better: warm is ahead, +0.10, 95 % interval 0.03 to 0.17, over 5 pairs",
    ]
    assert ask("plain", "warm").splitlines()[:3] == [
        "clear: better: warm is ahead, 3 to 4 of 5 pass; mean score +0.20, 95 % interval",
        "  0.06 to 0.34, over 5 pairs",
        "kind: better: warm is ahead, 1 to 1 of 5 pass; mean score +0.10, 95 % interval",
    ]
    assert ask("plain", "warm", "--full").splitlines()[:2] == words
    assert document(ask, "plain", "warm")["sentences"] == words
    worse = ask("warm", "plain", "--compare", "score_delta").splitlines()[:2]
    assert worse == [
        "clear: worse: warm is ahead, -0.20, 95 % interval -0.34 to -0.06, over 5 pairs",
        "kind: worse: warm is ahead, -0.10, 95 % interval -0.17 to -0.03, over 5 pairs",
    ]
    file_lines = " ".join(" ".join(ask("plain.jsonl", "plain", "--allow-incomparable").splitlines()[:4]).split())
    equal = "mean score +0 over 5 pairs, all differences are 0; about 1 more pair is needed to tell"
    assert file_lines == f"clear: cannot tell: 3 to 3 of 5 pass; {equal} kind: cannot tell: 1 to 1 of 5 pass; {equal}"


def test_a_label_that_only_the_number_of_labels_leaves_open_is_named_for_the_gate(results):
    """Of 60 answers 7 more are right; next to another label the p is not below 5 %."""
    right = [1.0] * 38 + [0.0] * 22
    after = [0.0] * 2 + [1.0] * 45 + [0.0] * 13
    forms = ([1.0, 0.0] * 30, [1.0, 0.0] * 29 + [0.0, 1.0])
    first, second = results({"right": right, "form": forms[0]}), results({"right": after, "form": forms[1]})
    text = plain_lines(lines(first, second, Pair(first, second).document([]), is_full=False))
    assert "p adjusted by Holm" in " ".join(text.split())
    assert "gate: {on: right, min_pass_rate: 0.8}" in text


def test_runs_without_a_common_label_are_no_comparison_and_have_a_next_step(ask, run_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"subject_id": "1", "metrics": {"scores": {"clear": 0.5}}}\n')
    (tmp_path / "b.jsonl").write_text('{"subject_id": "1", "metrics": {"scores": {"kind": 0.5}}}\n')
    call = ["a.jsonl", "b.jsonl", "--allow-incomparable"]
    result = CliRunner().invoke(compare, call, standalone_mode=False)
    assert result.return_value == 0
    assert result.output.splitlines()[:2] == [
        "no label is in both runs: A has clear, B has kind",
        "next: give equal metrics and judges the same label (as: LABEL), and run again",
    ]
    assert CliRunner().invoke(compare, [*call, "--fail-on", "worse"], standalone_mode=False).return_value == 3


def test_the_test_that_decides_is_named_if_another_test_has_another_answer(results):
    hard = [number / 20 for number in range(20)]
    a, b = (
        results({"a": hard}),
        results({"a": [score + 0.02 + (number % 2) / 100 for number, score in enumerate(hard)]}),
    )
    document = Pair(a, b).document(["stats/paired", "stats/significance"])
    text = plain_lines(lines(a, b, document))
    assert text.startswith("a: better: B is ahead, ")
    assert "  a: cannot tell: +0.0" in text
    assert "  a: the answer of the first lines decides, because they compare each subject" in text
    assert not re.findall("variant|higher|lower|no evidence|baseline", text)


def test_a_run_prints_of_its_baseline_what_compare_prints(ask, run_folder):
    """The same sentences, counts and tables, line by line, also if the run is shown later."""
    run = dicast.run(
        pipeline("warm", "warm", baseline={"run": "plain", "compare": ["stats/paired", "stats/score_delta"]})
    )
    show = [sys.executable, "-m", "dicast", "show", str(run.run_id), "--full"]
    stdout = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    compared = ask("plain", run.run_id, "--compare", "paired", "--compare", "score_delta")
    tables = [
        line for line in compared[compared.index("stats/paired") :].split("clear: 1 pass")[0].splitlines() if line
    ]
    lines = [line for line in stdout.splitlines() if line]
    sentences = compared.splitlines()[:2]
    counts = [line for line in compared.splitlines() if " of 5" in line]
    first = lines.index(sentences[0])
    assert lines[first : first + len(tables) + 4] == [*sentences, *counts, *tables]
    assert run.comparison["stats/paired"]["sentences"] == sentences
    assert [entry["words"] for entry in run.baseline["passes"].values()] == counts


def test_another_line_of_passing_is_in_the_document_with_the_line_that_counts_both_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n{"id": "2", "output": "b"}')
    file = {"source": {"rows/jsonl": {"path": "rows.jsonl"}}}
    for name, line in (("low", 0.25), ("same", 0.25), ("high", 0.75)):
        dicast.run({"name": name, **file, "metrics": [{"proxy/format": {"as": "form", "pass_at": line}}]})

    def form(*names):
        result = CliRunner().invoke(compare, [*names, "--json"], catch_exceptions=False)
        return json.loads(result.output)["passes"]["form"]

    assert form("low", "high")["pass_at"] == {"a": 0.25, "b": 0.75, "counted": 0.75}
    assert form("high", "low")["pass_at"] == {"a": 0.75, "b": 0.25, "counted": 0.75}
    assert "pass_at" not in form("low", "same")


def test_without_flags_a_score_from_one_half_on_passes(results):
    first, second = results({"a": [0.4, 0.5, None, 0.9]}), results({"a": [0.5, 0.49, 1, 0.6]})
    pairs = pair_passes(first, second)
    flips = [(flip["subject_id"], flip["a"], flip["b"], flip["label"]) for flip in list_flips(pairs, first, second)]
    assert flips == [("0", False, True, "a"), ("1", True, False, "a")]
    assert pairs.counts("a").known == 3
    assert pass_counts(first, Results("r", "n", lambda: iter(()))) == {}


records = st.dictionaries(
    st.sampled_from("xyz"),
    st.tuples(
        st.dictionaries(st.sampled_from("ab"), st.sampled_from([0.25, 0.5, None])),
        st.dictionaries(st.sampled_from("ab"), st.sampled_from([True, False, None])),
    ),
)


def answers(records):
    """Return the passes by label, and the labels: by flags, or by an only score from one half on if no flag of the run names the label."""
    flagged = {name for _, flags in records.values() for name, flag in flags.items() if flag is not None}
    flags_by_subject, assumed = {}, set()
    for subject, (scores, flags) in records.items():
        known_flags = {name: flag for name, flag in flags.items() if flag is not None}
        flags_by_subject |= {(subject, name): flag for name, flag in known_flags.items()}
        if not known_flags and len(scores) == 1 and None not in scores.values():
            ((name, score),) = scores.items()
            flags_by_subject[subject, name] = None if name in flagged else score >= 0.5
            assumed |= {name} - flagged
    return flags_by_subject, assumed


@given(records, records)
def test_flips_are_those_that_looking_at_each_subject_finds(first, second):
    def run(records):
        rows = {
            name: {"metrics": {"scores": scores, "score_flags": flags}} for name, (scores, flags) in records.items()
        }
        return Results("r", "n", lambda: iter(rows.items()))

    pairs = pair_passes(run(first), run(second))
    flips = list_flips(pairs, run(first), run(second))
    listed = {(flip["subject_id"], flip["label"]): (flip["a"], flip["score_a"], flip["score_b"]) for flip in flips}
    expected, ((before, ours), (after, theirs)) = {}, (answers(first), answers(second))
    for subject, name in before.keys() & after.keys():
        was, now = before[subject, name], after[subject, name]
        if None not in (was, now) and was is not now and name not in ours ^ theirs:
            expected[subject, name] = (was, first[subject][0].get(name), second[subject][0].get(name))
    assert (listed, len(flips)) == (expected, len(expected))
    for label, counts in pairs.counted().items():
        changed = [was for (_, name), (was, *_) in expected.items() if name == label]
        assert (counts.a, counts.b) == (sum(changed), len(changed) - sum(changed))
        paired = counts.known + counts.open
        assert paired + counts.unpaired_a == len([*pairs.a.subjects(label)])
        assert paired + counts.unpaired_b == len([*pairs.b.subjects(label)])
    assert [flip["subject_id"] for flip in flips] == sorted((flip["subject_id"] for flip in flips), key=[*first].index)


def test_a_name_whose_runs_scored_nothing_differs_from_an_unknown_name(run_folder, tmp_path, monkeypatch):
    shutil.copytree(run_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    dicast.run(pipeline("broken", "plain", task={"task/command": {"command": ["false"]}}))
    with pytest.raises(ConfigError, match="no run of 'broken' can be compared by its name: each run scored nothing"):
        CliRunner().invoke(compare, ["plain", "broken"], catch_exceptions=False)
    with pytest.raises(ConfigError, match="did you mean 'broken'"):
        CliRunner().invoke(compare, ["plain", "brokn"], catch_exceptions=False)


def test_the_records_of_a_run_are_read_once_for_all_comparisons_of_scores_and_once_for_passes():
    read = []

    def records(name):
        read.append(name)
        return iter([(str(row), {"metrics": {"scores": {"a": row}}}) for row in range(4)])

    pair = Pair(Results("1", "a", lambda: records("a")), Results("2", "b", lambda: records("b")))
    pair.document([name for name in COMPARISONS if name != "stats/category_effects"])  # it also needs the rows
    assert read == ["a", "b", "a", "b"]


def test_two_files_of_records_need_no_ledger(ask, run_folder, tmp_path, monkeypatch):
    both = ("plain.jsonl", "copy.jsonl", "--allow-incomparable")
    (run_folder / "copy.jsonl").write_bytes((run_folder / "plain.jsonl").read_bytes())
    result = document(ask, *both)
    for name in both[:2]:
        (tmp_path / name).write_bytes((run_folder / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert json.loads(run(compare, [*both, "--json"], catch_exceptions=False).output) == result
    with pytest.raises(LedgerRefused, match="no ledger at"):
        run(compare, ["plain.jsonl", "plain"], catch_exceptions=False)
    with pytest.raises(LedgerRefused, match=r"no ledger at gone\.db"):
        run(compare, [*both, "--ledger", "gone.db"], catch_exceptions=False)
    with pytest.raises(ConfigError, match="are the same file, plain.jsonl"):
        run(compare, ["plain.jsonl", "plain.jsonl"], catch_exceptions=False)
    with pytest.raises(ConfigError, match="a file of records has no fingerprints"):
        run(compare, both[:2], catch_exceptions=False)
    assert not (tmp_path / ".dicast").exists()


def test_where_no_subject_has_a_score_in_both_runs_it_is_not_said_that_none_has_flipped(ask, run_folder):
    line = '{"subject_id": "SUBJECT", "row": {}, "metrics": {}}\n'
    for name in ("one", "other"):
        (run_folder / f"{name}.jsonl").write_text("".join(line.replace("SUBJECT", str(number)) for number in range(3)))
    text = ask("one.jsonl", "other.jsonl", "--allow-incomparable", "--full")
    assert "no subject has a flag or a score in both runs" in text
    assert "no subject passes" not in text


def test_a_run_is_not_compared_with_itself(ask, run_folder):
    with pytest.raises(
        ConfigError, match=r"A and B \('plain'\) are the same run, \S+ \(plain\); give the id of .*\(warm\)"
    ):
        ask("plain", "plain")
    with pytest.raises(ConfigError, match=r"'plain.jsonl'.* are the same run"):
        ask("plain.jsonl", "plain.jsonl", "--allow-incomparable")


def test_the_runs_to_compare_instead_are_runs_that_compare_accepts(ask):
    with pytest.raises(ConfigError, match=r"give the id of another run, such as ") as refused:
        ask("plain", "plain")
    names = re.findall(r"[0-9A-Z]{26}(?= \()", str(refused.value).partition("give the id")[2])
    assert 1 <= len(names) <= 3
    for name in names:
        assert ask(name, "plain")
    with pytest.raises(ConfigError, match=r"are the same run, \S+ \(other\); dicast runs lists the runs$"):
        ask("other", "other")


def test_a_turn_and_a_session_of_one_id_are_two_subjects(tmp_path, monkeypatch):
    """Their verdicts have two labels; each label has a pair for each of its subjects."""
    monkeypatch.chdir(tmp_path)
    subjects = [Subject(kind, f"s{n}", output="x", context={"n": n}) for n in range(3) for kind in ("turn", "session")]

    @dicast.judge(accepts=["turn"])
    def turns(subject, *, plus: float = 0.0):
        return Judgment(subject.context["n"] / 4 + plus)

    @dicast.judge(accepts=["session"])
    def sessions(subject):
        return Judgment(0.5)

    for name, plus in (("a", 0.0), ("b", 0.25)):
        text = json.dumps(
            {
                "name": name,
                "judges": [{"t": {"as": "t"}}, {"s": {"as": "s"}}],
                "ledger": {"ledger/sqlite": {"path": "l.db"}},
            }
        )
        run_pipeline(text, subjects=subjects, components={"t": turns(plus=plus), "s": sessions()})
    result = json.loads(
        CliRunner()
        .invoke(compare, ["a", "b", "--ledger", "l.db", "--allow-incomparable", "--json"], catch_exceptions=False)
        .output
    )
    paired = result["comparisons"]["stats/paired"]["criteria"]
    assert {name: (entry["n_pairs"], entry["mean_difference"]) for name, entry in paired.items()} == {
        "t": (3, 0.25),
        "s": (3, 0),
    }
    assert [(flip["subject_kind"], flip["subject_id"]) for flip in result["flips"]] == [("turn", "s1")]


def test_each_comparison_says_what_it_is_about_and_of_how_many(ask):
    def table(name):
        lines = ask("plain", "warm", "--compare", name).split("\n\n")[1].splitlines()
        return lines[0].partition(": ")[2], lines[1].split()

    for name in ("practical", "outliers", "flips"):
        title, heads = table(name)
        assert (title, heads[0]) == ("the same subjects in both runs", "n")
    for name in ("bayes", "criteria_effects", "distribution_shift", "significance"):
        title, heads = table(name)
        assert title == "all subjects of each run, as if they were different ones"
        assert heads[:4] == ["n", "A", "n", "B"]


def test_options_of_a_comparison_hold_where_it_is_named_a_second_time(ask, run_folder):
    both, flips_ = (
        ("plain.jsonl", "broken.jsonl", "--allow-incomparable"),
        '{"flips": {"pass_at": 0.9, "fail_at": 0.8}}',
    )
    (run_folder / "broken.jsonl").write_text((run_folder / "plain.jsonl").read_text())
    once = document(ask, *both, "--compare", flips_)
    assert document(ask, *both, "--compare", flips_, "--compare", "flips") == once
    assert document(ask, *both, "--compare", "flips") != once


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (
            ["--compare", '{"paired": {"difference": 0.1}}', "--gold", "plain.jsonl"],
            "--gold is an option of stats/paired",
        ),
        (["--compare", '{"flips": []}'], "the options of flips are not an object"),
    ],
)
def test_options_that_would_not_hold_are_refused(run_folder, options, wrong):
    with pytest.raises(ConfigError, match=wrong):
        CliRunner().invoke(compare, ["plain", "broken", *options], catch_exceptions=False)


def test_the_answer_fits_one_screen_however_many_labels_and_gaps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        missing = range(2) if name == "old" else range(2, 6)
        rows = [
            {"id": str(i), "output": "yes" if i % 2 else name, "note": None if i in missing else "x"} for i in range(20)
        ]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        labels = [{"check/contains": {"as": f"m{i}", "value": "ye{{ note }}"[: 2 + i]}} for i in range(2)]
        labels += [{"check/contains": {"as": f"n{i}", "value": f"{'{{ note }}'}{i}"}} for i in range(9)]
        dicast.run({"name": name, "source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": labels})
    short = CliRunner().invoke(compare, ["old", "new"], catch_exceptions=False).output
    lines = short.splitlines()
    assert len(lines) <= 22
    assert "gate" not in short
    assert lines[-1].startswith("details: dicast compare ")
    assert len(lines[-1]) <= 80
    assert sum(" are scored in one run only: " in line for line in lines) == 1
    full = CliRunner().invoke(compare, ["old", "new", "--full"], catch_exceptions=False).output
    assert "gate does not decide" not in full
    assert full.count("of 18 subjects of A have no score in B") == 1
    assert "adjusted p: the gate's labels are tested alone" in " ".join(full.split())
