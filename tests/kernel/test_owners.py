"""Owners of leases, help of commands that are not imported, and ids that no subject has."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from types import SimpleNamespace

import attrs
import pytest

from dicast import Due, Subject
from dicast._kernel.cli.command_help import command_help, in_one_line
from dicast._kernel.contract.registry import Offer
from dicast._kernel.leases.hold_lease import Owner, live_run_check
from dicast._kernel.run.named_subjects import named_subjects
from dicast.testing import MemoryLedger

SOURCE = '''
import click

@click.command(short_help="Count\\nthings.", help="Not this.")
@click.option("--n", help="An option.")
def counted(
    n,
):
    """Not this either."""


@click.command(
    help="""
    Of a multi-line
    argument. And more.
    """
)
async def helped(): ...

@click.group()
@decorated
def grouped():
    """Group of v1.2 things. And more.

    A second paragraph.
    """

@click.option("--n", help="An option.")
def plain():
    x = """
not indented
"""

@click.command(help=TEXT)
def dynamic():
    """A docstring."""
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "a_package" / "commands.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return "a_package.commands"


def offer(target):
    return attrs.evolve(OFFER, target=target)


OFFER = Offer(**{field.name: "some-plugin" for field in attrs.fields(Offer)})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("counted", "Count\nthings."),
        ("helped", "Of a multi-line\nargument. And more."),
        ("grouped", "Group of v1.2 things. And more.\n\nA second paragraph."),
        ("plain", ""),
        ("dynamic", "A docstring."),
        ("missing", ""),
    ],
)
def test_the_help_of_a_command_is_read_without_an_import(module, name, text):
    assert command_help(offer(f"{module}:{name}")) == text
    assert "a_package" not in sys.modules


@pytest.mark.parametrize("target", ["no_such_module:main", "a_package.missing:main", "sys:exit"])
def test_a_command_without_a_source_has_no_help(module, target):
    assert command_help(offer(target)) == ""


@pytest.mark.parametrize(
    ("name", "width", "line"),
    [
        ("counted", 40, "Count things. (some-plugin)"),
        ("grouped", 40, "Group of v1.2 things. (some-plugin)"),
        ("grouped", 35, "Group of v1.2 things. (some-plugin)"),
        ("grouped", 34, "Group of v1.2 thing… (some-plugin)"),
        ("grouped", 0, "Group of… (some-plugin)"),
        ("missing", 40, "(some-plugin)"),
    ],
)
def test_the_help_in_one_line_is_its_first_sentence(module, name, width, line):
    assert in_one_line(offer(f"{module}:{name}"), width) == line


def owner_of(text):
    return Owner.of(SimpleNamespace(owner=text))


def test_an_owner_reads_back_and_other_text_has_no_process():
    current = Owner.current()
    assert owner_of(current.text()) == current
    assert current.pid == os.getpid()
    assert not current.has_died()
    assert owner_of("host x m s") == Owner("host x m s", 0)
    assert owner_of("host 12 m") == Owner("host 12 m", 0)
    assert owner_of("host 12 m s") == Owner("host", 12, "m", "s")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_an_owner_has_died_when_its_process_is_gone_or_its_pid_is_another_process_s():
    current = Owner.current()
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    with open(f"/proc/{process.pid}/stat") as file:
        started = file.read().rpartition(") ")[2].split()[19]
    child = Owner(current.host, process.pid, current.machine, started)
    assert not child.has_died()
    assert attrs.evolve(child, started="1").has_died()
    assert not attrs.evolve(child, started="1", machine="").has_died()
    assert not attrs.evolve(child, started="1", machine="another").has_died()
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, but not waited for
    assert child.has_died()
    process.wait()
    assert child.has_died()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_run_is_alive_until_its_lease_ends_or_its_process_dies():
    elsewhere = Owner("host", 12, "another", "1")
    dead = attrs.evolve(Owner.current(), started="1")  # another process has this pid now

    async def alive():
        async with MemoryLedger().open() as ledger:
            for run_id, owner, seconds in (("held", elsewhere, 60), ("over", elsewhere, -1), ("dead", dead, 60)):
                ledger.take_lease(run_id, owner.text(), seconds, lambda lease: False)
            is_alive = live_run_check(ledger)
            return {run_id: is_alive(run_id) for run_id in ("never held", "held", "over", "dead")}

    assert asyncio.run(alive()) == {"never held": True, "held": True, "over": False, "dead": False}


def warnings_of(subjects, ids, *, accepts=lambda kind: True, source=None, read_all=True):
    """Return the warnings after reading *subjects*, for a component with data about *ids*."""

    class Live:
        subject_ids = ids

        def judge(self):
            """Judge nothing."""

    call = SimpleNamespace(function=Live().judge, slot=SimpleNamespace(accepts=accepts, label="exact"))

    async def read():
        async def given():
            for subject in subjects:
                yield Due(subject)

        named = named_subjects(given(), [call], source)
        if named is None:
            return None
        async for _ in named:
            if not read_all:
                break
        return named.warnings()

    return asyncio.run(read())


def event(turn):
    return SimpleNamespace(turn_id=turn)


def turn(id, session, *turns):
    return Subject("turn", id, session_id=session, trail=SimpleNamespace(events=[event(each) for each in turns]))


def test_ids_that_no_subject_has_are_a_warning():
    (warning,) = warnings_of([Subject("row", "a")], ["a", 7])
    assert warning == {
        "kind": "unused_references",
        "label": "exact",
        "message": "exact: 1 line of references fits no subject that it judges: '7'; compare the ids with dicast verdicts",
        "count": 1,
        "ids": ["7"],
    }
    (many,) = warnings_of([], [str(number) for number in range(1200)])
    assert many["message"].startswith(
        "exact: 1,200 lines of references fit no subject that it judges: '0', '1', '2', '3', '4', …;"
    )
    assert (many["count"], many["ids"]) == (1200, ["0", "1", "2", "3", "4"])
    (five,) = warnings_of([], list("abcde"))
    assert "'e'; compare" in five["message"]


def test_components_without_ids_subjects_that_are_left_and_undrawn_ids_are_no_warning():
    assert warnings_of([Subject("row", "a")], []) is None
    assert warnings_of([Subject("row", "a")], ["a"]) == []
    assert warnings_of([Subject("row", "a"), Subject("row", "b")], ["x"], read_all=False) == []
    source = SimpleNamespace(undrawn=lambda ids: [id for id in ids if id == "b"])
    (warning,) = warnings_of([], ["b", "c"], source=source)
    assert warning["ids"] == ["c"]
    assert warnings_of([], ["b"], source=source) == []
    assert len(warnings_of([Subject("row", "a")], ["a"], accepts=lambda kind: kind == "turn")) == 1


@pytest.mark.parametrize(
    ("subject", "is_used"),
    [
        (Subject("row", "a", session_id="s"), True),
        (turn("t", "s", None, "t"), True),
        (turn("t", "s", "t", "u"), False),
        (Subject("session", "s", session_id="s"), True),
        (Subject("row", "a"), False),
    ],
)
def test_the_id_of_a_session_is_used_by_its_only_turn(subject, is_used):
    assert (warnings_of([subject], ["s"]) == []) is is_used
