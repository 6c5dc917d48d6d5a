"""``dicast label`` and ``dicast labels``: labels at a terminal, import and export, and agreement between labelers."""

from __future__ import annotations

import csv
import os
import pty
import select
import subprocess
import sys
import termios
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trust_project import Row, judge, rows_of

from dicast import Subject
from dicast.toolkit.gold import GoldLabel
from dicast_trust.labeling.prompt import Prompt
from dicast_trust.labels.agreement import LabelerAgreement
from dicast_trust.labels.choosing import Judged

SUBJECTS = [Judged(Subject("row", f"r{number}", "?", "!"), "run") for number in range(4)]


def answers(keys, *, lines=(), enough=lambda _: None):
    """Return the labels of a person who presses *keys*, and the printed lines."""
    output, pressed, typed = [], iter(keys), iter(lines)
    prompt = Prompt(
        "ada",
        lambda judged: iter([judged.subject.id]),
        lambda: next(pressed),
        lambda _: next(typed),
        output.append,
        enough,
    )
    return [(judged.subject.id, label.score) for judged, label in prompt.labels(SUBJECTS)], output


def test_keys_are_scores():
    assert answers("ynt1")[0] == [("r0", 1.0), ("r1", 0.0), ("r2", 0.5), ("r3", 1.0)]


def test_score_can_be_typed_and_a_wrong_one_is_asked_again():
    labels, output = answers("==sq", lines=["7", "0.25"])
    assert labels == [("r0", 0.25)]
    assert "'7' is not a number from 0 to 1" in output


def test_skipped_subjects_have_no_label():
    assert answers("ysyq")[0] == [("r0", 1.0), ("r2", 1.0)]


def test_undo_asks_about_the_last_one_again():
    assert answers("yuny" + "q")[0] == [("r0", 0.0), ("r1", 1.0)]


@pytest.mark.parametrize("end", ["q", "\x03", "\x04"])
def test_quitting_keeps_the_labels(end):
    assert answers("yn" + end)[0] == [("r0", 1.0), ("r1", 0.0)]


def test_other_keys_show_the_help():
    assert any("u: undo: ask about the previous subject again" in line for line in answers("xq")[1])


def test_asking_ends_where_it_is_enough():
    labels, output = answers("yyyy", enough=lambda labels_so_far: "enough" if len(labels_so_far) == 2 else None)
    assert (len(labels), output[-1]) == (2, "enough")


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory):
    return judge(tmp_path_factory.mktemp("judged"), rows_of(40, wrong=lambda _: 0))


def test_without_a_terminal_the_error_names_the_next_step(judged):
    message = judged.refused("label", "pipeline.yaml")
    assert "dicast labels import FILE" in message


def test_ledger_or_run_that_is_not_there_is_refused(project):
    assert "ledger" in project.refused("label", "last", "--ledger", "none.db")


def at_a_terminal(*arguments, keys, folder):
    """Call the command line at a pseudo-terminal, press a key at each prompt, and return the printed text."""
    terminal, process_end = pty.openpty()
    command = [sys.executable, "-m", "dicast", *map(str, arguments)]
    environ = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    with subprocess.Popen(
        command, stdin=process_end, stdout=process_end, stderr=process_end, cwd=folder, env=environ
    ) as process:
        os.close(process_end)
        screen, remaining_keys, until = "", list(keys), time.monotonic() + 100
        while time.monotonic() < until:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    screen += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    break
            elif process.poll() is not None:
                break
            is_asked = remaining_keys and screen.count("q quit") > len(keys) - len(remaining_keys)
            # Keys typed before the terminal reads single keys are lost.
            if process.poll() is None and is_asked and not termios.tcgetattr(terminal)[3] & termios.ICANON:
                os.write(terminal, remaining_keys.pop(0).encode())
        if process.poll() is None and time.monotonic() >= until:
            process.kill()
    os.close(terminal)
    return screen, process.returncode


@pytest.mark.slow
def test_person_at_a_terminal_is_shown_the_evidence_and_no_verdict(judged):
    screen, code = at_a_terminal(
        "label", "pipeline.yaml", "--random", "3", "--labeller", "ada", keys="ynt", folder=judged.folder
    )
    assert code == 0, screen
    assert "answer-r" in screen
    assert "confidence" not in screen
    assert "3 of 40 subjects that pipeline.yaml has judged" in screen
    assert "3 of 3 subjects labeled by ada" in screen
    human = [verdict for verdict in judged.verdicts() if verdict["judge"] == "human"]
    assert sorted(verdict["score"] for verdict in human) == [0.0, 0.5, 1.0]
    assert {(verdict["judge_kind"], verdict["basis"], verdict["signals"]["labeller"]) for verdict in human} == {
        ("human", "human", "ada")
    }
    lines = judged.call("labels", "export", "--ledger", "ledger.db").stdout.splitlines()
    assert len(lines) == 3
    assert judged.document("ledger", "verify", "--ledger", "ledger.db")["ok"] is True


def imported(project, rows, *options, name="labels.jsonl"):
    project.lines(name, [{"subject_id": row.id, "score": row.gold} for row in rows])
    return project.document("labels", "import", name, "--ledger", "ledger.db", *options)


def test_labels_in_the_ledger_replace_a_file(judged):
    rows = rows_of(40, wrong=lambda _: 0)
    assert imported(judged, rows, "--labeller", "ada") == {"imported": 40, "labellers": ["ada"]}
    of_file = judged.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    of_ledger = judged.document("calibrate", "pipeline.yaml", "--gold", "ledger")
    assert of_ledger["stages"] == of_file["stages"]


def test_export_and_import_are_the_same_labels(judged, tmp_path):
    imported(judged, rows_of(40, wrong=lambda _: 0), "--labeller", "ada")
    judged.call("labels", "export", "--out", "out.csv", "--ledger", "ledger.db")
    with (judged.folder / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["subject_id"], float(row["score"]), row["labeller"]) for row in rows] == [
        (row.id, row.gold, "ada") for row in rows_of(40, wrong=lambda _: 0)
    ]
    assert "weight" not in rows[0]  # it is for labels that were not drawn with equal chances
    document = judged.document("calibrate", "pipeline.yaml", "--gold", "out.csv")
    assert document["gold"]["n"] == 40


def test_an_export_never_takes_the_place_of_a_pipeline_that_the_ledger_names(judged):
    imported(judged, rows_of(3, wrong=lambda _: 0), "--labeller", "ada")
    judged.run()
    file = judged.folder / "pipeline.yaml"
    before = file.read_bytes()
    message = judged.refused("labels", "export", "--out", "pipeline.yaml", "--ledger", "ledger.db")
    assert "the command reads this file" in message
    assert file.read_bytes() == before


def test_an_export_replaces_an_older_export_and_no_other_file(judged):
    imported(judged, rows_of(3, wrong=lambda _: 0), "--labeller", "ada")
    mine = judged.folder / "mine.jsonl"
    mine.write_text('{"subject_id": "r1", "score": 1, "note": "by hand"}\n')
    message = judged.refused("labels", "export", "--out", "mine.jsonl", "--ledger", "ledger.db")
    assert "cannot write mine.jsonl: it has other content" in message
    assert "by hand" in mine.read_text()
    for _ in range(2):
        judged.call("labels", "export", "--out", "out.jsonl", "--ledger", "ledger.db")


def test_labels_of_subjects_that_were_not_read_are_refused_by_line(judged):
    judged.lines("labels.jsonl", [{"subject_id": "r1", "score": 1}, {"subject_id": "r99x", "score": 1}])
    message = judged.refused("labels", "import", "labels.jsonl", "--ledger", "ledger.db")
    assert "labels.jsonl:2: no run in the ledger has read a subject 'r99x'" in message


def test_labels_that_differ_are_refused_until_somebody_decides(judged):
    rows = rows_of(40, wrong=lambda _: 0)
    imported(judged, rows, "--labeller", "ada")
    flipped = [Row(row.id, row.cheap, row.expensive, 1 - row.gold if row.id == "r0" else row.gold) for row in rows]
    imported(judged, flipped, "--labeller", "bob")
    assert "two labels that differ" in judged.refused("calibrate", "pipeline.yaml", "--gold", "ledger")
    document = judged.document("labels", "agreement", "--ledger", "ledger.db")
    assert [entry["subject_id"] for entry in document["differ"]] == ["r0"]
    assert (document["labellers"], document["pairs"][0]["n"], document["pairs"][0]["agree"]) == (
        {"ada": 40, "bob": 40},
        40,
        39 / 40,
    )
    assert "is not a terminal" in judged.refused("labels", "adjudicate", "--ledger", "ledger.db")
    imported(judged, rows[:1], "--labeller", "eve", "--adjudicated")
    assert judged.document("labels", "agreement", "--ledger", "ledger.db")["differ"] == []
    judged.document("calibrate", "pipeline.yaml", "--gold", "ledger")


def test_label_without_an_output_meets_labels_of_the_outputs_of_its_subject(judged):
    rows = rows_of(40, wrong=lambda _: 0)
    imported(judged, rows, "--labeller", "ada")
    digest = judged.document("show", "r0", "--ledger", "ledger.db")["subject"]["output_digest"]
    judged.lines("bo.jsonl", [{"subject_id": "r0", "score": 1 - rows[0].gold, "output_digest": digest}])
    judged.document("labels", "import", "bo.jsonl", "--labeller", "bo", "--ledger", "ledger.db")
    document = judged.document("labels", "agreement", "--ledger", "ledger.db")
    assert document["labellers"] == {"ada": 40, "bo": 1}
    assert [(entry["n"], entry["agree"]) for entry in document["pairs"]] == [(1, 0.0)]
    assert [entry["labels"] for entry in document["differ"]] == [{"ada": rows[0].gold, "bo": 1 - rows[0].gold}]
    assert (
        judged.refused("calibrate", "pipeline.yaml", "--gold", "ledger").rstrip().endswith("dicast labels adjudicate")
    )
    imported(judged, rows[:1], "--labeller", "eve", "--adjudicated")
    assert judged.document("labels", "agreement", "--ledger", "ledger.db")["differ"] == []
    exported = judged.call("labels", "export", "--ledger", "ledger.db").stdout
    (judged.folder / "all.jsonl").write_text(exported)
    for gold in ("ledger", "all.jsonl", "gold.jsonl"):
        assert judged.document("calibrate", "pipeline.yaml", "--gold", gold)["gold"]["n"] == 40


def test_label_of_an_output_counts_before_its_labellers_label_of_the_subject():
    plain, named = GoldLabel("r0", 1.0, "row", "ada"), GoldLabel("r0", 0.0, "row", "ada", output_digest="d")
    agreement = LabelerAgreement.of([plain, named, GoldLabel("r0", 0.0, "row", "bo", output_digest="d")])
    assert (agreement.differing(), agreement.document()["pairs"][0]["agree"]) == ({}, 1.0)


@pytest.mark.slow
def test_labels_that_were_not_drawn_at_random_do_not_calibrate(judged):
    screen, code = at_a_terminal(
        "label", "pipeline.yaml", "--stratified", "--labeller", "ada", keys="yyq", folder=judged.folder
    )
    assert code == 0, screen
    assert "drawn at random" in judged.refused("calibrate", "pipeline.yaml", "--gold", "ledger")
    for name in ("out.jsonl", "out.csv"):  # in CSV the cells of weights are empty, and drawn alone says it
        judged.call("labels", "export", "--out", name, "--ledger", "ledger.db")
        assert "not drawn with equal chances" in judged.refused("calibrate", "pipeline.yaml", "--gold", name)


@pytest.mark.slow
def test_labelling_goes_on_until_the_judge_is_calibrated(project):
    project.write([Row(f"r{number}", (1.0, 0.9), (1.0, 0.9), 1.0) for number in range(30)])
    project.run()
    options = ("--until-calibrated", "--target", "0.6", "--alpha", "0.4", "--labeller", "ada")
    screen, code = at_a_terminal("label", "pipeline.yaml", *options, keys=("y" * 4 + "n") * 6, folder=project.folder)
    assert code == 0, screen
    (line,) = [line for line in screen.splitlines() if line.startswith("calibrated after")]
    assert "both.stages[0] >= 0.9" in line
    assert 5 <= int(line.split()[2]) < 30  # after labels of both classes


LABELS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=40)


@given(LABELS)
def test_alpha_is_krippendorffs(labels):
    import krippendorff

    newest = {(labeler, subject): score for labeler, subject, score in labels}
    agreement = LabelerAgreement.of(
        [GoldLabel(f"r{subject}", float(score), "row", f"l{labeler}") for (labeler, subject), score in newest.items()]
    )
    table = [
        [float(newest[labeler, subject]) if (labeler, subject) in newest else float("nan") for subject in range(10)]
        for labeler in range(3)
    ]
    counts = [sum((labeler, subject) in newest for labeler in range(3)) for subject in range(10)]
    values = {score for (labeler, subject), score in newest.items() if counts[subject] > 1}
    if len(values) < 2:
        assert agreement.alpha() is None
    else:
        expected = krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
        assert agreement.alpha() == pytest.approx(expected, abs=1e-9)


def test_labels_keep_how_they_were_drawn_on_their_way_in(judged):
    """Labels of hard cases stay labels of hard cases, also if only a weight marks them."""
    rows = [{"subject_id": f"r{number}", "score": 1} for number in range(40)]
    for name, also in (("hard", {"drawn": "disagreements"}), ("weighted", {"weight": 2})):
        judged.lines(f"{name}.jsonl", [row | also for row in rows])
        assert judged.call("labels", "import", f"{name}.jsonl", "--ledger", "ledger.db").exit_code == 0
        assert "drawn at random" in judged.refused("calibrate", "pipeline.yaml", "--gold", "ledger")


def test_a_decision_in_csv_decides(judged):
    lines = [f"r{number},1,ada,false" for number in range(40)] + ["r0,0,bob,false", "r0,1,eve,true"]
    (judged.folder / "gold.csv").write_text("subject_id,score,labeller,adjudicated\n" + "\n".join(lines) + "\n")
    document = judged.document("calibrate", "pipeline.yaml", "--gold", "gold.csv", code=3)
    assert document["gold"]["n"] == 40
    undecided = "\n".join(line for line in lines if ",true" not in line)
    (judged.folder / "gold.csv").write_text(f"subject_id,score,labeller,adjudicated\n{undecided}\n")
    assert "r0" in judged.refused("calibrate", "pipeline.yaml", "--gold", "gold.csv")
