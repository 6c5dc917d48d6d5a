"""Samples of all kinds, and logs of runs that failed."""

from __future__ import annotations

import json
import zipfile

import pytest

from dicast import DataError
from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.detection import detected
from dicast_inspect import Log

from .conftest import sample

START = {"version": 2, "eval": {"task": "t", "model": "m"}, "plan": {}}
HEADER = {**START, "status": "success"}


def messages_of(subject) -> list[tuple[str, str]]:
    """Return role and text of the messages of a subject."""
    return [
        (event.payload["role"], event.payload["text"]) for event in subject.trail if event.type == "message.sent"
    ]  # fmt: skip


def test_each_epoch_is_a_session_with_the_target_as_reference(write, read):
    log = read(write(sample(1), {**sample(1), "epoch": 2}))
    assert [(subject.id, subject.reference) for subject in log.subjects] == [("1", "A"), ("1_epoch_2", "A")]
    assert log.subjects[0].context["task"] == "t"


def test_scores_are_recorded_with_the_numbers_of_their_letters(write, read):
    scores = {
        "match": {"value": "C", "explanation": "equal"},
        "model_graded_qa": {"value": "I"},
        "parts": {"value": {"depth": "P", "tone": "warm", "n": None, "none": "N"}},
        "list": {"value": [1, 0.5]},
        "stars": {"value": 4},
        "words": {"value": "yes"},
        "edited": {"value": 1, "history": [{"value": 0}, {"value": 1, "provenance": {"author": "Ada"}}]},
    }
    assert read(write(sample(1, scores=scores))).scores("1") == {
        "match": (1.0, None, None, "recorded", "match"),
        "model_graded_qa": (0.0, None, None, "model", "model_graded_qa"),
        "parts/depth": (0.5, None, None, "recorded", "parts"),
        "parts/tone": (None, None, "warm", "recorded", "parts"),
        "parts/n": (None, None, "null", "recorded", "parts"),
        "parts/none": (0.0, None, None, "recorded", "parts"),
        "list/1": (1.0, None, None, "recorded", "list"),
        "list/2": (0.5, None, None, "recorded", "list"),
        "stars": (None, 4.0, None, "recorded", "stars"),
        "words": (1.0, None, None, "recorded", "words"),
        "edited": (1.0, None, None, "human", "Ada"),
    }


def test_all_numbers_of_a_name_have_one_scale(write, read):
    log = read(write(sample(1, scores={"stars": {"value": 1}}), sample(2, scores={"stars": {"value": 5}})))
    assert [log.scores(id_)["stars"][:2] for id_ in ("1", "2")] == [(None, 1.0), (None, 5.0)]


def test_not_a_number_is_a_category_and_counted(write, read):
    path = write(sample(1, scores={"match": {"value": "VALUE"}}))
    path.write_text(path.read_text().replace('"VALUE"', "NaN"))
    log = read(path)
    assert log.scores("1")["match"][2] == "NaN"
    assert log.counts.marked == {"number that is not finite": 1}


def test_the_last_turn_has_the_scores_if_no_session_is_judged(write, read):
    turns = [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 2, "abcd", strict=True)]
    log = read(write(sample(1, *turns, scores={"match": {"value": "C"}})), "turn")
    assert [subject.id for subject in log.subjects] == ["1/1", "1/2"]
    assert log.scores("1/2")["match"][0] == 1.0
    assert log.subjects[1].reference == "A"


def test_contents_of_all_types_are_parts(write, read):
    image = "data:image/png;base64,iVBORw0KGgo="
    user = [
        {"type": "text", "text": "look"},
        {"type": "image", "image": image},
        {"type": "audio", "audio": "a.mp3", "format": "mp3"},
    ]
    assistant = [
        {"type": "reasoning", "reasoning": "hm"},
        {
            "type": "tool_use",
            "tool_type": "web_search",
            "id": "s1",
            "name": "search",
            "arguments": "{}",
            "result": "hit",
        },
        {"type": "text", "text": "no", "refusal": True},
        {"type": "data", "data": {}},
        {"type": "smell", "smell": "x"},
    ]
    call = {"id": "c", "function": "f", "arguments": {"x": 1}, "parse_error": "bad"}
    log = read(
        write(
            sample(
                1,
                {"role": "user", "content": user},
                {"role": "assistant", "content": assistant, "tool_calls": [call]},
                {
                    "role": "tool",
                    "content": "",
                    "tool_call_id": "c",
                    "function": "f",
                    "error": {"type": "timeout", "message": "too slow"},
                },
                {"role": "user", "content": [{"type": "image", "image": image}], "tool_call_id": ["c"]},
                {"role": "critic", "content": "hm"},
                {"role": "assistant", "content": "<think>so</think>done"},
            )
        )
    )
    contents = log.counts.details["contents"]
    assert (contents["turns"], contents["calls"], contents["results"], contents["failed_results"]) == (1, 2, 2, 1)
    assert log.counts.details["unknown"] == {"part smell": 1, "role critic": 1}
    assert log.counts.marked["data of a provider"] == 1
    events = log.subjects[0].events
    assert [event.payload["error"] for event in events if event.type == "tool.failed"] == ["too slow"]
    assert "so" not in events[-2].payload["signals_extra"]["final_response_text"]
    with pytest.raises(DataError, match="unknown part 'smell'"):
        read(write(sample(1, {"role": "assistant", "content": [{"type": "smell"}]})), unknown="error")


def test_attachments_replace_their_references(write, read):
    attachments = {"abc": "a long question", "def": "a long result"}
    log = read(
        write(
            sample(
                1,
                {"role": "user", "content": "attachment://abc"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "c", "function": "f", "arguments": {"q": "tc://def"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "attachment://def"}]},
                {"role": "assistant", "content": "attachment://missing"},
                attachments=attachments,
            )
        ),
        "turn",
    )
    (turn,) = log.subjects
    assert (turn.input, turn.output) == ("a long question", "attachment://missing")
    assert [event.payload["input"] for event in turn.events if event.type == "tool.called"] == [{"q": "a long result"}]


def test_a_sample_without_an_answer_is_a_failed_subject_with_its_scores(write, read):
    user = {"role": "user", "content": "Q"}
    failed = sample("bad", user, error={"message": "it broke"}, scores={"match": {"value": "I"}})
    limited = sample("slow", user, limit={"type": "time", "limit": 5})
    late = sample("late", limit={"type": "message", "limit": 2}, error={"message": "later"})
    log = read(write(failed, limited, late))
    assert log.failures == {
        "bad": "the sample failed: it broke",
        "slow": "the sample reached its limit (time) before the model wrote a message",
    }
    assert log.scores("bad")["match"][0] == 0.0
    assert (log.counts.records, log.counts.failed) == (3, 2)
    assert log.subjects[2].events[-1].payload["disposition"] == "error"


def test_the_messages_of_a_sample_without_a_history_are_its_input_and_output(write, read):
    output = {
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "A"}, "stop_reason": "max_tokens"}],
        "usage": {"input_tokens": 3},
    }
    log = read(write({**sample(1), "messages": [], "output": output}), "turn")
    assert (log.subjects[0].input, log.subjects[0].output) == ("Q", "A")


def test_a_cut_run_has_its_written_samples_and_names_the_others(write, read):
    summaries = [
        {"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}},
        {"id": 2, "epoch": 1, "error": "out of memory", "scores": {"match": {"value": "I"}}},
    ]
    members = {
        "_journal/start.json": START,
        "samples/1_epoch_1.json": sample(1),
        "_journal/summaries/1.json": summaries,
    }
    log = read(write(name="cut.eval", members=members))
    assert [subject.id for subject in log.subjects] == ["1", "2"]
    assert log.failures == {"2": "the sample failed: out of memory"}
    assert log.scores("2")["match"][0] == 0.0


def test_a_log_without_samples_has_the_scores_of_its_summaries(write, read):
    summaries = [{"id": "a", "epoch": 2, "scores": {"match": {"value": "C"}}}]
    log = read(write(name="bare.eval", members={"header.json": HEADER, "summaries.json": summaries}))
    assert log.failures["a_epoch_2"].startswith("the log has only a summary")
    with pytest.raises(DataError, match="has no samples"):
        read(write(name="empty.eval", members={"header.json": HEADER}))


def test_one_broken_member_does_not_refuse_the_log(write, read):
    members = {"header.json": HEADER, "samples/1_epoch_1.json": sample(1), "samples/2_epoch_1.json": sample(2)}
    path = write(name="broken.eval", members=members)
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("samples/2_epoch_1.json").header_offset + 60
    data = bytearray(path.read_bytes())
    data[place : place + 20] = b"\xff" * 20
    path.write_bytes(bytes(data))
    log = read(path)
    assert [subject.id for subject in log.subjects] == ["1", "2"]
    assert "cannot be read" in log.failures["2"]


def test_the_last_of_two_members_with_a_name_counts(write, read, tmp_path):
    path = write(name="again.eval", members={"header.json": HEADER, "samples/1_epoch_1.json": sample(1)})
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, scores={"match": {"value": "C"}})))
    assert read(path).scores("1")["match"][0] == 1.0


@pytest.mark.parametrize(
    "text", ["PK\x03\x04 cut", '{"version": 2, "status": "success", "eval": {}, "plan": {}, "samples": [{"id": 1,']
)
def test_a_cut_file_is_refused_before_anything_is_judged(tmp_path, text):
    path = tmp_path / "cut"
    path.write_text(text)
    source = Log(path=path)
    with pytest.raises(DataError), source.reading() as live:
        live.check()


def test_the_format_is_detected_by_content(write, tmp_path):
    paths = [
        write(sample(1)),
        write(name="x.zip", members={"header.json": HEADER, "samples/1_epoch_1.json": sample(1)}),
    ]
    detections = [detected(read_beginning(path, "utf-8")) for path in paths]
    assert [(item.component, item.version) for item in detections if item] == [
        ("inspect/log", "json"),
        ("inspect/log", "eval"),
    ]
    other = tmp_path / "other.json"
    other.write_text('{"version": 2, "results": []}')
    assert Log.detect(read_beginning(other, "utf-8")) is None


def test_a_run_records_the_scores_as_verdicts(write, read, tmp_path, monkeypatch):
    import dicast

    monkeypatch.chdir(tmp_path)
    write(sample(1, scores={"match": {"value": "C"}}), sample(2, scores={"match": {"value": "I"}}))
    source = {"inspect/log": {"path": "log.json"}}
    run = dicast.run({"source": source, "metrics": ["diff/match"], "ledger": {"ledger/sqlite": {"path": "l.db"}}})
    assert run.recorded["recorded/match"]["mean"] == 0.5
    assert run.score is not None
    assert run.score["mean"] == 1.0


def call_event(id_: str, *, error: str | None = None, **fields):
    """Return the event of a model call that returned the message *id_*, or failed."""
    choices = [] if error else [{"message": {"role": "assistant", "id": id_}}]
    return {"event": "model", "model": "m", "output": {"choices": choices}, "error": error, **fields}


ACTIONS = (
    {"role": "user", "content": "Q"},
    {"role": "assistant", "id": "a1", "content": "", "tool_calls": [{"id": "c", "function": "f", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "c", "function": "f", "content": "ok"},
)
FAILED = call_event("", error="RateLimitError('429')")


def ends(log):
    """Return for each session why its turns ended, the errors of failed calls, and its disposition."""
    return {
        subject.id: (
            [event.payload.get("ended_by") for event in subject.trail if event.type == "turn.completed"],
            [event.payload["error"] for event in subject.trail if event.type == "llm.call_failed"],
            [*subject.trail][-1].payload["disposition"],
        )
        for subject in log.subjects
    }


def test_a_sample_that_a_failed_call_ended_has_a_turn_that_ends_by_it(write, read):
    events = [call_event("a1"), FAILED, {"event": "error", "error": {"message": "RateLimitError('429')"}}]
    log = read(write(sample(1, *ACTIONS, events=events, error={"message": "RateLimitError('429')"})))
    assert ends(log) == {"1": (["model_failure"], ["RateLimitError('429')"], "error")}
    assert log.counts.details["contents"]["failed_model_calls"] == 1


def test_a_failed_call_that_the_agent_made_good_is_in_its_turn(write, read):
    answer = {"role": "assistant", "id": "a2", "content": "A"}
    log = read(write(sample(1, *ACTIONS, answer, events=[call_event("a1"), FAILED, call_event("a2")])))
    assert ends(log) == {"1": ([None], ["RateLimitError('429')"], "completed")}
    written = {"role": "assistant", "id": "own", "content": "I give up."}
    log = read(write(sample(1, *ACTIONS, written, events=[call_event("a1"), FAILED])))
    assert ends(log) == {"1": ([None], ["RateLimitError('429')"], "completed")}


@pytest.mark.parametrize(("fields", "end"), [({"error": {"message": "the sandbox died"}}, "interruption"),
                                             ({"limit": {"type": "message", "limit": 3}}, "interruption"), ({}, None)])  # fmt: skip
def test_a_sample_that_was_stopped_before_its_answer_did_not_end_its_turn(write, read, fields, end):
    log = read(write(sample(1, *ACTIONS, events=[call_event("a1")], **fields)))
    assert ends(log)["1"][0] == [end]
    answered = sample(1, *ACTIONS, {"role": "assistant", "content": "A"}, **fields)
    assert ends(read(write(answered)))["1"][0] == [None]


def test_an_error_of_a_scorer_does_not_end_the_turn(write, read):
    events = [call_event("a1"), {"event": "span_begin", "id": "s", "type": "scorers"}]
    log = read(write(sample(1, *ACTIONS, events=events, error={"message": "no grade"})))
    assert ends(log)["1"][0] == [None]


def test_a_failed_call_of_an_agent_ends_the_turn_of_its_own_session(write, read):
    spans = [
        {"event": "span_begin", "id": "t", "type": "tool"},
        {"event": "span_begin", "id": "g", "type": "agent", "name": "helper", "parent_id": "t"},
    ]
    asked = [{"role": "user", "content": "help"}, {"role": "assistant", "id": "h1", "content": "", "tool_calls": []}]
    inner = [call_event("h1", span_id="g", input=asked[:1]), FAILED | {"span_id": "g", "input": asked}]
    error = {"message": "RateLimitError('429')"}
    log = read(write(sample(1, *ACTIONS[:2], events=[*spans, call_event("a1"), *inner], error=error)))
    assert ends(log) == {
        "1": (["interruption"], [], "error"),
        "1/agent-1": (["model_failure"], ["RateLimitError('429')"], "error"),
    }
