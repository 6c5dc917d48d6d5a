"""The base of sources that read sessions recorded by another tool, with a small format."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from dicast import ConfigError, DataError, Due, Subject
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection, detected
from dicast.toolkit.parts import TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session


@attrs.frozen
class Diary(SessionSource):
    """A session a line: ``{"diary": ID, "entries": [[ROLE, TEXT], …]}``, or ``{"diary": ID, "failed": REASON}``."""

    title = "a diary"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a diary."""
        return Detection(cls.title) if any("diary" in record for record in beginning.objects) else None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield a session a line."""
        for line, record in reading.objects():
            if "diary" not in record:
                reading.refuse("the line has no diary", line)
            elif "failed" in record:
                yield reading.failed(record["diary"], record["failed"])
            else:
                yield self._session(reading, record)

    def _session(self, reading: SessionReading, record: Mapping[str, Any]) -> Session:
        conversation = reading.conversation(record["diary"], record.get("parent"))
        for number, (role, text) in enumerate(record["entries"]):
            if role in ("user", "assistant"):
                conversation.add_text(role, text)
            elif role == "call":
                conversation.add("assistant", [ToolCall(text, "look", {})])
                conversation.add("tool", [ToolResult(text, "seen")])
            else:
                conversation.add("assistant", [reading.unknown("role", role, f"entries.{number}"), TextPart(text)])
        return reading.end(conversation, {"mood": record.get("mood")})


def _line(id: str, *entries: tuple[str, str], **fields: object) -> str:
    return json.dumps({"diary": id, "entries": entries or [("user", "Hi"), ("assistant", "Ho")], **fields}) + "\n"


def _subjects(source: Diary) -> tuple[list[Any], Any]:
    with source.reading() as live:
        live.check()
        return list(live.subjects()), live.read_counts()


def _refusal(source: Diary) -> str:
    with pytest.raises(DataError) as caught:
        source.check()
    return str(caught.value)


def test_a_folder_is_read_in_the_order_of_names_and_other_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.jsonl").write_text(_line("c"))
    (tmp_path / "b.jsonl").write_text(_line("b"))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(_line("a").encode()))
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "empty.jsonl").write_text("")

    subjects, counts = _subjects(Diary(tmp_path))

    assert [subject.id for subject in subjects] == ["a/1", "b/1", "c/1"]
    assert any("2 files" in note and "notes.md" in note and "empty.jsonl" in note for note in counts.notes)


def test_a_session_id_that_occurs_again_gets_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_line("same") + _line("child", parent="same"))
    (tmp_path / "b.jsonl").write_text(_line("same") + _line("child", parent="same"))

    subjects, counts = _subjects(Diary(tmp_path, subjects=["session"]))

    assert [(subject.id, subject.parent_id) for subject in subjects] == [
        ("same", None),
        ("child", "same"),
        ("same#2", None),
        ("child#2", "same#2"),
    ]
    assert any("2 repeated session ids: the second session is ID#2" in note for note in counts.notes)


def test_tool_calls_with_the_same_id_in_two_files_are_two_subjects(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(_line(name, ("user", "Go"), ("call", "c1"), ("assistant", "Done")))

    subjects, counts = _subjects(Diary(tmp_path, subjects=["tool_cycle"]))

    assert [subject.id for subject in subjects] == ["a/1/c1", "b/1/c1"]
    assert counts.details["contents"]["calls"] == counts.details["contents"]["results"] == 2


def test_unknown_shapes_are_marked_counted_and_placed(tmp_path: Path) -> None:
    file = tmp_path / "diary.jsonl"
    file.write_text(_line("a") + _line("b", ("user", "Hi"), ("ghost", "boo")))

    subjects, counts = _subjects(Diary(file))

    assert subjects[1].output == '[unknown role "ghost"]\nboo'
    assert counts.marked == {"role ghost": 1} == counts.details["unknown"]
    assert f"role ghost marked 1 time, first at {file}:2" in counts.notes
    assert "diary.jsonl:2: " in _refusal(Diary(file, unknown="error"))
    assert "unknown role 'ghost' (unknown: mark reads it as a marker) (entries.1)" in _refusal(
        Diary(file, unknown="error")
    )


def test_a_failed_record_is_a_failed_subject(tmp_path: Path) -> None:
    file = tmp_path / "diary.jsonl"
    file.write_text(_line("a") + json.dumps({"diary": "b", "failed": "ink ran out"}) + "\n")

    subjects, counts = _subjects(Diary(file))

    assert isinstance(subjects[0], Subject)
    assert isinstance(subjects[1], Due)
    assert subjects[1].failure is not None
    assert (subjects[1].failure.kind, subjects[1].failure.message) == ("source_error", "ink ran out")
    assert (counts.records, counts.failed) == (2, 1)


def test_lines_outside_the_format_refuse_the_input_with_every_place(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_line("a") + '{"other": 1}\n')
    (tmp_path / "b.jsonl").write_text(_line("b") + '{"diary": \n')

    message = _refusal(Diary(tmp_path))

    assert "a.jsonl:2: the line has no diary" in message
    assert "b.jsonl:2" in message


def test_lines_that_are_no_objects_are_marked(tmp_path: Path) -> None:
    file = tmp_path / "diary.jsonl"
    file.write_text(_line("a") + '[1]\n"b"\n')

    assert _subjects(Diary(file))[1].marked == {"line a list": 1, "line a string": 1}
    assert "diary.jsonl:2: unknown line" in _refusal(Diary(file, unknown="error"))


def test_a_last_line_that_was_cut_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "diary.jsonl"
    whole = _line("b", ("user", "Grüße"), ("assistant", "Hallo"))
    for length in range(1, len(whole) - 1):
        file.write_bytes(_line("a").encode() + whole.encode()[:length])
        subjects, counts = _subjects(Diary(file))
        assert [subject.id for subject in subjects] == ["a/1"]
        assert counts.marked == {"cut line": 1}
    assert "was cut while it was written" in _refusal(Diary(file, unknown="error"))


@attrs.frozen
class Plain(Diary):
    """``ROLE: TEXT`` a line; the name of the file is the session."""

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the session of the file."""
        conversation = reading.conversation(reading.stem)
        for _, text in reading.lines():
            role, _, content = text.partition(": ")
            conversation.add_text(role, content)
        yield reading.end(conversation)

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a plain diary."""
        return Detection(cls.title) if beginning.start.startswith(b"user: ") else None


def test_lines_of_text_are_read_without_their_ends_and_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "monday.txt"
    file.write_bytes("user: Grüße \r\n\n  \nassistant: Hallo\n".encode())

    (subject,), counts = _subjects(Plain(file))

    assert (subject.id, subject.input, subject.output) == ("monday/1", "Grüße ", "Hallo")
    assert counts.marked == {}


@pytest.mark.parametrize(("cut", "output"), [(1, "Grüße"), (3, "Grü"), (5, "Gr")])
def test_a_last_line_of_text_without_an_end_is_read_and_marked(tmp_path: Path, cut: int, output: str) -> None:
    file = tmp_path / "monday.txt"
    file.write_bytes("user: Hi\nassistant: Grüße\n".encode()[:-cut])

    (subject,), counts = _subjects(Plain(file))

    assert (subject.output, counts.marked) == (output, {"cut line": 1})
    assert "monday.txt:2: the last line was cut while it was written" in _refusal(Plain(file, unknown="error"))


def test_a_line_of_text_that_is_not_utf_8_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "monday.txt"
    file.write_bytes(b"user: Hi\nassistant: \xfc\n")

    assert "monday.txt:2: byte 0xfc is not UTF-8" in _refusal(Plain(file))


def test_lone_surrogates_and_wide_numbers_are_marked(tmp_path: Path) -> None:
    file = tmp_path / "diary.jsonl"
    file.write_text(
        '{"diary": "a", "mood": 123456789012345678901234, "entries": [["user", "\\ud83d"], ["assistant", "Ho"]]}\n'
    )

    subjects, counts = _subjects(Diary(file))

    assert subjects[0].input == "\\ud83d"
    assert subjects[0].context["mood"] == "123456789012345678901234"
    assert counts.marked == {"lone surrogate": 1, "number of more than 64 bits": 1}


@pytest.mark.parametrize(("text", "message"), [("", "the file is empty"), ("# Notes\n", "does not look like a diary")])
def test_a_file_of_another_format_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text(text)

    assert message in _refusal(Diary(file))


def test_a_missing_file_and_a_folder_without_sessions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")

    assert "no file of the folder is a diary (it has notes.md)" in _refusal(Diary(tmp_path))
    assert "did you mean 'notes.md'" in _refusal(Diary(tmp_path / "note.md"))


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    assert "cannot be read" in _refusal(Diary(tmp_path))


def test_the_digest_is_that_of_the_contents_and_names(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_line("a"))
    first = Diary(tmp_path).check()

    assert Diary(tmp_path).check() == first
    (tmp_path / "a.jsonl").write_text(_line("b"))
    assert Diary(tmp_path).check() != first


def test_a_wrong_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a regular expression"):
        Diary(Path("x"), tool_error="(")


def test_the_most_specific_detection_counts_and_a_tie_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def source(title: str, specificity: int) -> object:
        class Fixed:
            @staticmethod
            def detect(beginning: Beginning) -> Detection | None:
                return Detection(title, specificity=specificity) if beginning.start else None

        return Fixed

    sources = [("x/a", source("an A", 1)), ("x/b", source("a B", 2))]
    monkeypatch.setattr("dicast.toolkit.detection.detecting_sources", lambda registry: sources)

    best = detected(Beginning(b"{"))
    assert best is not None
    assert (best.title, best.component) == ("a B", "x/b")
    assert detected(Beginning(b"")) is None
    sources.append(("x/c", source("a C", 2)))
    with pytest.raises(ConfigError, match=r"a B \(x/b\) and a C \(x/c\)"):
        detected(Beginning(b"{"))


def _keys(items: list[Any]) -> list[tuple[object, ...]]:
    subjects = [item.subject if isinstance(item, Due) else item for item in items]
    return [(subject.id, subject.output, subject.events, [*subject.trail]) for subject in subjects]


def test_the_subjects_are_those_of_the_check_when_a_file_changes_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(_line("a") + _line("b", ("user", "Hi"), ("call", "c1"), ("odd", "Ho")) + _line("x", failed="lost"))
    source = Diary(path, subjects=("turn", "session"))
    items, counts = _subjects(source)
    with source.reading() as live:
        live.check()
        path.write_text(_line("other"))
        assert _keys(list(live.subjects())) == _keys(items)
        assert live.read_counts() == counts
        assert _keys(list(live.subjects())) == _keys(items)
        assert live.read_counts() == counts


def test_the_counts_of_an_interrupted_pass_are_those_of_its_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_line("a") + _line("b", ("odd", "Ho")) + _line("c"))
    with Diary(tmp_path / "a.jsonl").reading() as live:
        live.check()
        subjects = live.subjects()
        next(subjects)
        assert live.read_counts().records == 1
        assert not live.read_counts().dropped
        next(subjects)
        assert live.read_counts().records == 3
        assert live.read_counts().dropped == {"no_turn": 1}


def test_a_session_that_cannot_be_copied_is_read_again(tmp_path: Path) -> None:
    class Locked(Diary):
        def _session(self, reading: SessionReading, record: Mapping[str, Any]) -> Session:
            return attrs.evolve(super()._session(reading, record), context={"lock": threading.Lock()})

    path = tmp_path / "a.jsonl"
    path.write_text(_line("a"))
    items, counts = _subjects(Locked(path))
    assert [subject.id for subject in items] == ["a/1"]
    assert counts.records == 1


def test_texts_with_lone_surrogates_pass_the_check_and_the_subjects_alike(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"diary": "a", "entries": [["user", "Hi"], ["assistant", "\\ud83d"]]}\n')
    items, counts = _subjects(Diary(tmp_path / "a.jsonl"))
    assert items[0].output == "\\ud83d"
    assert counts.marked == {"lone surrogate": 1}
