"""Labels of people over HTTP: queues, blind cases, conflicts, retractions, decisions, guidelines."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points

import attrs
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import dicast
from dicast import Judgment, Query, Subject
from dicast.reading import given_labels, ledger_gold, output_digest, read_verdicts
from dicast.toolkit.random_order import in_random_order
from dicast_serve.application import application
from dicast_serve.guard import Tokens
from dicast_serve.guide import Guide

from .conftest import HOST, LABELLING, READING, trace
from .test_answers import COMMANDS, rounded

AUTHORIZED = {"authorization": f"Bearer {LABELLING}"}
ROWS = 12
(COMMAND,) = entry_points(group="console_scripts", name="dicast")


@attrs.frozen
class Judge:
    """A judge that passes the subjects whose number it divides, with a score that grows with the number."""

    name: str
    divisor: int

    def judge(self, subject, children):
        number = int(subject.id.removeprefix("r"))
        passes = number % self.divisor == 0
        signals = {"rationale_redacted": f"secret of {self.name}"}
        return Judgment((0.5 if passes else 0.0) + number / 40, 0.9, "llm", signals=signals)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The bytes of a ledger with a run over twelve rows by two judges."""
    path = tmp_path_factory.mktemp("judged") / "ledger.db"
    rows = [Subject("row", f"r{number}", f"question {number}", f"answer {number}") for number in range(ROWS)]
    pipeline = {
        "name": "nightly",
        "judges": [Judge("even", 2), Judge("third", 3)],
        "gate": {"on": "even", "min_score": 0.1},
        "ledger": {"ledger/sqlite": {"path": str(path)}},
    }
    dicast.run(pipeline, subjects=rows)
    return path.read_bytes()


@pytest.fixture
def path(judged, tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(judged)
    return path


def open_client(path, guide=None):
    app = application([path], Tokens(READING, LABELLING), [HOST], "dicast_8600", guide=guide)
    return TestClient(app, f"http://{HOST}", raise_server_exceptions=False, headers=AUTHORIZED)


@pytest.fixture
def client(path):
    with open_client(path) as client:
        yield client


def queue(client, **values):
    answer = client.get("/labels/queue", params=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(document):
    return [item["subject_id"] for item in document["data"]]


def label(client, number, score, judge="ada", status=201, **more):
    body = {"subject_id": f"r{number}", "subject_kind": "row", "score": score, "judge": judge, **more}
    answer = client.post("/labels", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def retract(client, number, run_id, judge="ada", status=201):
    body = {"subject_id": f"r{number}", "subject_kind": "row", "run_id": run_id, "judge": judge}
    answer = client.post("/labels/retractions", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def labels(path):
    """The labels that count, by person and subject."""
    read = dicast.read_ledger(path, given_labels)
    return {(item.labeller, item.subject_id): item.score for _, item in read}


def events(path, type):
    return dicast.read_ledger(path, lambda live: [dict(e.event.payload) for e in live.read(Query(types=(type,)))])


ALL = [f"r{number}" for number in range(ROWS)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"seed": 3}, [id for _, id in in_random_order([("row", id) for id in ALL], 3)]),
        ({"queue": "unlabeled"}, ALL),
        ({"queue": "failed"}, ["r1", "r3", "r5", "r7", "r9", "r11"]),
        ({"queue": "failed", "label": "third"}, ["r1", "r2", "r4", "r5", "r7", "r8", "r10", "r11"]),
        (
            {"queue": "label", "label": "third"},
            ["r1", "r2", "r4", "r5", "r7", "r8", "r10", "r11", "r0", "r3", "r6", "r9"],
        ),
        (
            {"queue": "odds", "seed": 0},
            [id for _, id in in_random_order([("row", f"r{n}") for n in (2, 3, 4, 8, 9, 10)], 0)],
        ),
        ({"queue": "differ"}, []),
        ({"subject_kind": "turn"}, []),
    ],
)
def test_queues_have_their_subjects_in_a_fixed_order(client, values, expected):
    document = queue(client, **values)
    assert ids(document) == expected
    assert (document["n"], document["left"]) == (len(expected), len(expected))
    assert [item["place"] for item in document["data"]] == list(range(1, len(expected) + 1))


def test_a_queue_is_about_a_label_of_the_run(client):
    answer = client.get("/labels/queue", params={"queue": "failed", "label": "nothing"})
    assert answer.status_code == 409
    assert "even" in answer.text
    by_default = queue(client, queue="label")
    assert (by_default["label"], by_default["n"]) == ("even", ROWS)  # the gate's label


def test_a_labeled_subject_leaves_the_persons_queue_and_places_stay(client):
    before = queue(client, labeller="ada", limit=5)
    label(client, int(ids(before)[1][1:]), 1)
    after = queue(client, labeller="ada", limit=5)
    assert ids(after)[:4] == [ids(before)[0], *ids(before)[2:]]
    assert [item["place"] for item in after["data"]] == [1, 3, 4, 5, 6]
    assert (after["n"], after["own"], after["labeled"], after["left"]) == (ROWS, 1, 1, ROWS - 1)
    assert after["next_cursor"] == 6
    of_another = queue(client, labeller="bob", limit=5)
    assert (ids(of_another), of_another["own"], of_another["labeled"]) == (ids(before), 0, 1)
    assert of_another["labellers"] == {"ada": 1}
    assert len(queue(client, labeller="bob", queue="unlabeled")["data"]) == ROWS - 1  # somebody has labeled it


def test_a_page_of_a_queue_has_the_cases_of_its_first_subjects(client):
    label(client, 1, 0, blind=True)
    page = queue(client, queue="label", labeller="bob", limit=5, cases=3)
    values = {"run": "last", "kind": "row", "labeller": "bob"}
    assert page["cases"] == [
        client.get("/labels/case", params={**values, "subject": subject}).json() for subject in ids(page)[:3]
    ]
    assert [case["evaluations"] for case in page["cases"]] == [None] * 3
    open_page = queue(client, queue="label", labeller="bob", limit=5, cases=1, blind="false")
    assert len(open_page["cases"][0]["evaluations"]) >= 2
    assert queue(client, labeller="bob")["cases"] == []


def test_a_case_has_no_verdict_until_its_label_is_there(client):
    values = {"run": "last", "kind": "row", "subject": "r1", "labeller": "ada"}
    blind = client.get("/labels/case", params=values)
    assert "secret of" not in blind.text
    assert [blind.json()[name] for name in ("evaluations", "failures", "runs", "own")] == [None] * 4
    sections = blind.json()["judged"]["sections"]
    assert any("answer 1" in section["text"] for section in sections)
    label(client, 1, 0, blind=True)
    seen = client.get("/labels/case", params=values).json()
    assert (seen["own"]["score"], seen["own"]["labeller"]) == (0.0, "ada")
    assert {verdict["judge"] for verdict in seen["evaluations"]} == {"even", "third", "ada"}
    of_another = client.get("/labels/case", params={**values, "labeller": "bob"})
    assert "secret of" not in of_another.text
    assert of_another.json()["given"] is None
    assert (
        len(client.get("/labels/case", params={**values, "labeller": "bob", "blind": "false"}).json()["evaluations"])
        == 3
    )


def test_a_label_records_its_draw_and_its_blindness(client, path):
    run_id = queue(client)["run_id"]
    label(client, 2, 1, drawn="random", blind=True, run_id=run_id)
    (payload,) = events(path, "label.given")
    expected = {
        "labeller": "ada",
        "score": 1.0,
        "drawn": "random",
        "blind": True,
        "output_digest": output_digest("answer 2"),
    }
    assert payload == {"subject": "r2", "subject_kind": "row", **expected}


def test_undo_retracts_a_label_and_deletes_nothing(client, path):
    first, second = label(client, 1, 1), label(client, 1, 0)
    retracted = retract(client, 1, second["run_id"])
    assert labels(path) == {("ada", "r1"): 1.0}  # the label before it counts again
    assert retract(client, 1, second["run_id"]) == retracted  # undone once
    assert len(events(path, "label.retracted")) == 1
    assert len(events(path, "label.given")) == 2
    retract(client, 1, first["run_id"])
    assert labels(path) == {}
    assert queue(client, labeller="ada")["own"] == 0
    verdicts = dicast.read_ledger(path, read_verdicts)
    assert "ada" not in {verdicts.origins[code].judge for code in verdicts.codes}
    page = client.get("/analytics/turns/r1?subject_kind=row").json()["data"]
    assert [verdict["retracted"] for verdict in page["evaluations"] if verdict["judge"] == "ada"] == [True, True]
    assert client.get("/labels/case?run=last&kind=row&subject=r1&labeller=ada").json()["evaluations"] is None
    label(client, 1, 0.5)
    assert labels(path) == {("ada", "r1"): 0.5}


def test_the_terminal_marks_the_verdict_of_a_retracted_label(client, path, capsys):
    main = COMMAND.load()
    kept, undone = label(client, 1, 1), label(client, 1, 0)
    retract(client, 1, undone["run_id"])
    assert main(["verdicts", "--judge", "ada", "--ledger", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("ada: ") == 2
    assert text.count("taken back") == 1
    assert text.endswith(", taken back")  # of the newest verdict
    for command in (["verdicts"], ["show", "r1", "--all"]):
        assert main([*command, "--json", "--ledger", str(path)]) == 0
        verdicts = json.loads(capsys.readouterr().out)["verdicts"]
        marks = {verdict["run_id"]: verdict.get("retracted") for verdict in verdicts if verdict["judge"] == "ada"}
        assert marks == {kept["run_id"]: None, undone["run_id"]: True}
    assert main(["show", "r1", "--all", "--ledger", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("basis human, taken back") == 1
    assert text.index("taken back") < text.rindex("ada: ")  # the newest run is first


def test_only_a_persons_own_label_is_retracted(client, path):
    labeled = label(client, 1, 1)
    assert "the label is ada's" in json.dumps(retract(client, 1, labeled["run_id"], "bob", status=409))
    retract(client, 2, labeled["run_id"], status=404)
    retract(client, 1, "nothing", status=404)
    reader = {"authorization": f"Bearer {READING}"}
    body = {"subject_id": "r1", "subject_kind": "row", "run_id": labeled["run_id"], "judge": "ada"}
    assert client.post("/labels/retractions", json=body, headers=reader).status_code == 403
    assert client.post("/labels/retractions", json={"subject_id": 1}).status_code == 400
    assert labels(path) == {("ada", "r1"): 1.0}


def test_one_person_in_two_tabs_loses_and_doubles_nothing(client, path):
    first = label(client, 1, 1, expected="")
    assert label(client, 1, 1, expected="")["run_id"] == first["run_id"]  # the same label, sent again
    refused = label(client, 1, 0, expected="", status=409)
    (error,) = refused["error"]["errors"]
    assert (error["parameter"], error["value"]) == ("expected", first["run_id"])
    assert "ada has labeled 'r1' 1 elsewhere" in error["message"]
    assert labels(path) == {("ada", "r1"): 1.0}
    replaced = label(client, 1, 0, expected=first["run_id"])
    retract(client, 1, replaced["run_id"])
    retract(client, 1, first["run_id"])
    label(client, 1, 0, expected=first["run_id"], status=409)  # retracted in the other tab
    assert len(events(path, "label.given")) == 2


def test_labels_at_the_same_time_enter_once_each(client, path):
    with ThreadPoolExecutor(6) as executor:
        calls = [(judge, score) for judge in ("ada", "bob") for score in (1, 1, 1)]
        runs = list(executor.map(lambda call: label(client, 3, call[1], call[0], expected="")["run_id"], calls))
    assert len(set(runs)) == 2
    assert labels(path) == {("ada", "r3"): 1.0, ("bob", "r3"): 1.0}
    assert len(events(path, "label.given")) == 2


def test_a_judge_is_compared_with_all_people_as_by_the_command(client, path):
    for number, scores in ((0, (1, 1, 1)), (1, (1, 0, 0)), (2, (1, 0)), (4, (0, 1)), (5, (0,))):
        for person, score in zip(("ada", "bob", "cid"), scores, strict=False):
            label(client, number, score, person)
    label(client, 4, 1, "eve", adjudicated=True)
    judges = {row["judge"]: row["labeled"] for row in client.get("/judges").json()["data"]}
    assert (judges["even"], judges["third"]) == (5, 5)
    options = ["--judge", "even", "--gold", "people", "--ledger", str(path), "--json"]
    printed = CliRunner().invoke(COMMANDS["agreement"].load(), options, catch_exceptions=False)
    answer = client.get("/analytics/agreement?judge=even&gold=people").json()
    assert answer == rounded(json.loads(printed.stdout))
    people = answer["people"]
    assert people["labellers"] == {"ada": 5, "bob": 4, "cid": 2}
    assert (people["equal"], people["majority"], people["adjudicated"], people["ties"]) == (2, 1, 1, 1)
    assert (answer["n"], answer["raters"]["people"]) == (4, {"n": 4, "base_rate": 0.5})
    assert answer["kappa"] == 1.0
    refused = client.get("/analytics/agreement?judge=even&gold=gold.jsonl")
    assert refused.status_code == 400


def test_people_who_differ_are_decided_between_and_their_labels_stay(client, path):
    for number, scores in ((1, (1, 0)), (2, (1, 1)), (4, (0, 1))):
        label(client, number, scores[0])
        label(client, number, scores[1], "bob")
    differ = queue(client, queue="differ", labeller="eve")
    assert (ids(differ), differ["n"], differ["decided"]) == (["r1", "r4"], 2, 0)
    values = {"run": "last", "kind": "row", "subject": "r1", "labeller": "eve", "people": "true"}
    case = client.get("/labels/case", params=values).json()
    assert {item["labeller"]: item["score"] for item in case["given"]} == {"ada": 1.0, "bob": 0.0}
    assert case["evaluations"] is None  # the judges' verdicts stay hidden
    decision = label(client, 1, 0, "eve", adjudicated=True)
    assert (decision["verdict"]["judge"], decision["verdict"]["signals"]) == ("adjudication", {"labeller": "eve"})
    after = queue(client, queue="differ", labeller="eve")
    assert (ids(after), after["n"], after["decided"]) == (["r4"], 2, 1)
    agreement = client.get("/labels/agreement").json()
    assert (agreement["adjudicated"], agreement["labellers"]) == (1, {"ada": 3, "bob": 3})
    (pair,) = agreement["pairs"]
    assert (pair["n"], pair["agree"]) == (3, pytest.approx(1 / 3, abs=1e-6))
    assert pair["agree_ci"][0] < pair["agree"] < pair["agree_ci"][1]
    assert len(events(path, "label.given")) == 7
    retract(client, 1, decision["run_id"], "eve")
    assert ids(queue(client, queue="differ", labeller="eve")) == ["r1", "r4"]


def test_a_labels_other_output_leaves_the_subject_in_the_queue(client, path):
    label(client, 1, 1)
    rows = [Subject("row", f"r{number}", "?", f"another {number}") for number in range(3)]
    ledger = {"ledger/sqlite": {"path": str(path)}}
    dicast.run({"name": "later", "judges": [Judge("even", 2)], "ledger": ledger}, subjects=rows)
    later = queue(client, labeller="ada", run="later")
    assert (sorted(ids(later)), later["own"]) == (["r0", "r1", "r2"], 0)
    assert queue(client, labeller="ada", run="nightly")["own"] == 1


def test_the_last_label_of_a_person_can_be_undone_after_a_reload(client):
    label(client, 1, 1)
    second = label(client, 2, 0)
    label(client, 3, 0, "bob")
    last = queue(client, labeller="ada")["last"]
    assert last == {"run_id": second["run_id"], "subject_kind": "row", "subject_id": "r2", "score": 0.0}
    assert queue(client, labeller="eve")["last"] is None


def test_a_judges_name_is_no_labellers(client):
    answer = client.get("/labels/queue", params={"labeller": "even"})
    assert answer.status_code == 409
    assert "judge 'even' is not a person" in answer.text


PIPELINE = """
name: nightly
source: {rows/jsonl: {path: rows.jsonl}}
judges:
  - llm/judge: {as: model, model: {openai/chat: {model: m, base_url: "http://127.0.0.1:9/v1"}}, criteria: [It is short.], context: [shown]}
ledger: {ledger/sqlite: {path: other.db}}
"""


def test_guidelines_are_a_file_and_the_objectives_of_judges(path, tmp_path):
    (tmp_path / "guide.md").write_text("# Pass\n\nIf the answer is *right*.\n")
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    guide = Guide.of(tmp_path / "guide.md", tmp_path / "pipeline.yaml")
    with open_client(path, guide) as client:
        file, objective = queue(client)["guidelines"]
        case = client.get("/labels/case?run=last&kind=row&subject=r1").json()
    assert (file["title"], file["text"].splitlines()[0]) == ("guide.md", "# Pass")
    assert objective["title"].startswith("model: rubric row-llm-v1")
    assert "- It is short." in objective["text"]
    assert case["is_same_judge"] is False  # the run had other judges


def test_missing_guidelines_are_refused(tmp_path):
    with pytest.raises(dicast.ConfigError, match="--guidelines: .*none.md cannot be read"):
        Guide.of(tmp_path / "none.md", None)


def test_a_decision_is_drawn_as_the_labels_that_it_decides_between(client, path):
    for number, draws in ((1, ("random", "random")), (2, ("failed", "failed")), (3, ("failed", "random"))):
        for judge, score, drawn in zip(("ada", "bob"), (1, 0), draws, strict=True):
            label(client, number, score, judge, drawn=drawn)
        label(client, number, 0, "eve", adjudicated=True)
    decisions = [item["drawn"] for item in events(path, "label.given") if item.get("adjudicated")]
    assert decisions == ["random", "failed", "random"]
    gold = dicast.read_ledger(path, ledger_gold)  # the labels of random draws, one for each subject
    assert {item.subject_id: item.score for item in gold.entries.values()} == {"r1": 0.0, "r3": 0.0}


@pytest.fixture
def conversations(tmp_path):
    """A client over a run that judged the turns and the session of a conversation."""
    pipeline = {
        "name": "chat",
        "source": {"traces/events": {"path": str(trace(tmp_path)), "subjects": ["turn", "session"]}},
        "judges": [{"heuristic/turn": {"as": "turns"}}, {"heuristic/session": {"as": "sessions"}}],
        "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
    }
    dicast.run(pipeline)
    with open_client(tmp_path / "ledger.db") as client:
        yield client


@pytest.mark.parametrize(("kind", "id", "answers"), [("turn", "s/1", 1), ("session", "s", 2)])
def test_turns_and_sessions_are_labeled_as_their_judge_saw_them(conversations, kind, id, answers):
    document = queue(conversations, labeller="ada", subject_kind=kind)
    assert id in ids(document)
    assert document["kinds"] == {"turn": 2, "session": 1}
    case = conversations.get("/labels/case", params={"run": "last", "kind": kind, "subject": id}).json()
    text = "".join(section["text"] for section in case["judged"]["sections"])
    assert text.count("In Australia") == answers
    body = {
        "subject_id": id,
        "subject_kind": kind,
        "score": 1,
        "judge": "ada",
        "run_id": case["run_id"],
        "expected": "",
    }
    assert conversations.post("/labels", json=body).status_code == 201
    assert id not in ids(queue(conversations, labeller="ada", subject_kind=kind))


PAIRS = """
name: pairs
source: {rows/jsonl: {path: rows.jsonl}}
judges:
  - llm/pairwise: {as: winner, model: {openai/chat: {model: m, base_url: "http://127.0.0.1:9/v1"}}}
ledger: {ledger/sqlite: {path: other.db}}
"""


@attrs.frozen
class Flipping:
    """A judge that compares two outputs."""

    name = "winner"

    def judge(self, subject, children):
        return Judgment(0.5, 0.9, "llm", signals={"flipped": True})


def test_a_pair_is_shown_as_its_judge_saw_it(tmp_path):
    (tmp_path / "pairs.yaml").write_text(PAIRS)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x", "reference": "y"}\n')
    path = tmp_path / "ledger.db"
    rows = [Subject("row", "a", "question", "the new answer", "the old answer")]
    dicast.run(
        {"name": "pairs", "judges": [Flipping()], "ledger": {"ledger/sqlite": {"path": str(path)}}}, subjects=rows
    )
    for guide in (None, Guide.of(None, tmp_path / "pairs.yaml")):
        with open_client(path, guide) as client:
            case = client.get("/labels/case?run=last&kind=row&subject=a").json()
        assert case["is_pair"] is True
        texts = [section["text"] for section in case["judged"]["sections"]]
        assert any("the new answer" in text for text in texts)
        assert any("the old answer" in text for text in texts)
    assert [section["title"] for section in case["judged"]["sections"]][1:] == ["FIRST OUTPUT", "SECOND OUTPUT"]
