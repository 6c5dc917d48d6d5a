"""Time verdicts of ``dicast watch`` on a growing trace, and kill the watch with SIGKILL."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from processes import DICAST, Figure, Wrong, environment, run

from dicast_ledger import connect

SESSIONS = 500
RATE = 200
SECONDS = 60.0
KILLS = 50
LOOKAHEAD = 5
GRACE = 0.2
"""Seconds that a watch waits behind a session's end for events that come late."""

PIPELINE = """\
source: {traces/events: {path: %s, subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {ledger/sqlite: {path: %s}}
"""
WATCH = [DICAST, "watch", "watch.yaml", "--json"]

Event = dict[str, Any]


class Agents:
    """Makes the events of *width* sessions that go on at the same time; one that ends makes room for a new one."""

    def __init__(self, width: int, seed: int) -> None:
        self._drawn = random.Random(seed)
        self._count = 0
        self._open = [self._session() for _ in range(width)]

    def next(self) -> Event:
        """The next event of any of the sessions."""
        place = self._drawn.randrange(len(self._open))
        event = next(self._open[place])
        if event["type"] == "session.ended":
            self._open[place] = self._session()
        return event

    def rest(self) -> Iterator[Event]:
        """Return the remaining lines of the open sessions, without new sessions."""
        for session in self._open:
            yield from session

    def _session(self) -> Iterator[Event]:
        self._count += 1
        return self._events(f"s{self._count}", self._drawn.randint(1, 9))

    def _events(self, session: str, turns: int) -> Iterator[Event]:
        drawn = self._drawn
        for number in range(turns):
            turn, call = f"{session}/{number}", f"{session}/{number}/c"
            yield _event("tool.called", session, turn, tool_use_id=call, tool_name="f", input_hash=str(number % 2))
            yield _event("tool.completed", session, turn, tool_use_id=call, tool_name="f", success=drawn.random() < 0.8)
            yield _event("turn.completed", session, turn, stop_reason="end_turn", tool_call_count=1)
            if number > LOOKAHEAD + 1 and drawn.random() < 0.3:
                about = f"{session}/{number - LOOKAHEAD - 2}"
                yield _event(
                    "feedback.explicit", session, None, scope="turn", subject_turn_id=about, rating="thumbs_down"
                )
        yield _event("session.ended", session, None, disposition="completed")


def _event(type: str, session: str, turn: str | None, **payload: object) -> Event:
    return {"type": type, "session_id": session, "turn_id": turn, "payload": payload}


def delays(folder: Path, seconds: float, seed: int) -> Iterator[Figure]:
    """Seconds from the writing of the event that closes a window to the moment the verdict can be read from the ledger.

    :raises Wrong: when a verdict is missing.
    """
    (folder / "watch.yaml").write_text(PIPELINE % ("trace.jsonl", "ledger.db"), encoding="utf-8")
    (folder / "trace.jsonl").touch()
    seen: dict[tuple[str, str], float] = {}
    stop = threading.Event()
    with (
        (folder / "watch.err").open("w") as errors,
        subprocess.Popen(WATCH, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=errors) as live,
    ):
        _await(lambda: _has_begun(folder / "ledger.db"))
        reader = threading.Thread(target=_look, args=(folder / "ledger.db", seen, stop))
        reader.start()
        closed = _write(folder / "trace.jsonl", seconds, seed)
        with suppress(Wrong):
            _await(lambda: closed.keys() <= seen.keys())
        stop.set()
        reader.join()
        live.send_signal(signal.SIGINT)
    if missing := closed.keys() - seen.keys():
        said = (folder / "watch.err").read_text()[:3000]
        raise Wrong(f"{len(missing)} of {len(closed)} verdicts are missing after 10 s, such as {min(missing)}:\n{said}")
    taken = sorted(seen[key] - at for key, at in closed.items())
    yield Figure("watch.sessions", SESSIONS)
    yield Figure("watch.rate", RATE, "events/s")
    yield Figure("watch.verdicts", len(taken))
    yield Figure("watch.delay.median", taken[len(taken) // 2], "s")
    yield Figure("watch.delay.p99", taken[int(len(taken) * 0.99)], "s", "<= 1")
    yield Figure("watch.delay.max", taken[-1], "s", "<= 1")


def _write(path: Path, seconds: float, seed: int) -> dict[tuple[str, str], float]:
    """Write events for so many seconds; return when the window of each subject was closed."""
    agents = Agents(SESSIONS, seed)
    closed: dict[tuple[str, str], float] = {}
    turns: dict[str, list[str]] = {}
    began = time.time()
    with path.open("a", encoding="utf-8", buffering=1) as file:
        for number in range(int(seconds * RATE)):
            time.sleep(max(0.0, began + number / RATE - time.time()))
            event = agents.next()
            file.write(json.dumps(event) + "\n")
            _note_closing(event, turns, closed, time.time())
    return closed


def _note_closing(event: Event, turns: dict[str, list[str]], closed: dict[tuple[str, str], float], now: float) -> None:
    own, turn = turns.setdefault(event["session_id"], []), event["turn_id"]
    if event["type"] == "session.ended":
        closed["session", event["session_id"]] = now + GRACE
        for each in own:
            closed.setdefault(("turn", each), now + GRACE)
    elif turn is not None and turn not in own:
        own.append(turn)
        if len(own) > LOOKAHEAD:
            closed["turn", own[-1 - LOOKAHEAD]] = now


def _look(ledger: Path, seen: dict[tuple[str, str], float], stop: threading.Event) -> None:
    """Note when each verdict can first be read by somebody else."""
    seq = 0
    query = "SELECT seq, subject_kind, subject_id FROM events WHERE type = 'eval.completed' AND seq > ? ORDER BY seq"
    with closing(connect(ledger)) as database:
        while not stop.wait(0.02):
            now = time.time()
            for found, kind, id in database.execute(query, (seq,)).fetchall():
                seq = found
                if kind != "tool_cycle":
                    seen.setdefault((kind, id), now)


def killed(folder: Path, kills: int, seed: int) -> Iterator[Figure]:
    """Write and rotate a trace while the watch is killed again and again; compare the result with ``run``.

    :raises Wrong: when a verdict is missing, was given twice, or is not the one that ``dicast run`` gives.
    """
    work = folder
    (work / "watch.yaml").write_text(PIPELINE % ("logs", "watched.db"), encoding="utf-8")
    (work / "run.yaml").write_text(PIPELINE % ("whole.jsonl", "run.db"), encoding="utf-8")
    (work / "logs").mkdir()
    stop = threading.Event()
    writer = threading.Thread(target=_write_and_rotate, args=(work, seed, stop))
    writer.start()
    moments = random.Random(seed)
    hits = 0
    for _ in range(kills):
        hits += _kill_after(work, moments.uniform(0.2, 2.0))
    stop.set()
    writer.join()
    _finish(work)
    run([DICAST, "ledger", "verify", "--ledger", "watched.db", "--json"], work)
    run([DICAST, "run", "run.yaml", "--json"], work)
    subjects, again = _compare(work)
    yield Figure("watch.kills", hits, "live processes", f">= {kills}")
    yield Figure("watch.kills.subjects", subjects, "judged once each for a trigger, as by run")
    yield Figure("watch.kills.judged_again", again, "by feedback")


def _write_and_rotate(work: Path, seed: int, stop: threading.Event) -> None:
    """Write until a stop signal, then write the rest; rename each file after some seconds, at a line's end."""
    agents = Agents(40, seed)
    rotated = 0
    with (work / "whole.jsonl").open("w", encoding="utf-8") as whole:
        while not stop.is_set():
            with (work / "logs" / "now.jsonl").open("a", encoding="utf-8", buffering=1) as file:
                until = time.monotonic() + 4.0
                while time.monotonic() < until and not stop.wait(0.003):
                    line = json.dumps(agents.next()) + "\n"
                    whole.write(line)
                    file.write(line[:20])  # what is written is seen in parts
                    file.flush()
                    file.write(line[20:])
            if not stop.is_set():
                rotated += 1
                (work / "logs" / "now.jsonl").rename(work / "logs" / f"{rotated:03d}.jsonl")
        with (work / "logs" / "now.jsonl").open("a", encoding="utf-8") as file:
            for event in agents.rest():
                line = json.dumps(event) + "\n"
                whole.write(line)
                file.write(line)


def _kill_after(work: Path, seconds: float) -> bool:
    with subprocess.Popen(
        WATCH, cwd=work, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True
    raise Wrong(f"a watch ended by itself with {process.returncode}:\n{output.decode()}\n{errors.decode()}")


def _finish(work: Path) -> None:
    """Wait until the watch has read the whole trace, and stop it."""
    ended = sum('"session.ended"' in line for line in (work / "whole.jsonl").open(encoding="utf-8"))
    with subprocess.Popen(
        WATCH, cwd=work, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as live:
        try:
            _await(lambda: _judged_sessions(work / "watched.db") >= ended, 60.0)
            time.sleep(1.0)  # and whatever it would do twice
        finally:
            live.send_signal(signal.SIGINT)
        if live.wait() != 130:
            raise Wrong(f"an interrupted watch ended with {live.returncode}")


def _compare(work: Path) -> tuple[int, int]:
    """How many subjects there are, and how many were judged again, where all is as it should be."""
    watched, ran = _verdicts(work / "watched.db"), _verdicts(work / "run.db")
    twice = [key for key, found in watched.items() if max(Counter(trigger for trigger, _ in found).values()) > 1]
    if watched.keys() != ran.keys():
        raise Wrong(f"{len(watched.keys() ^ ran.keys())} subjects were judged by one of watch and run alone")
    if twice:
        raise Wrong(f"{len(twice)} subjects have two verdicts for one trigger, such as {twice[0]}")
    differing = [key for key in ran if watched[key][-1][1] != ran[key][-1][1]]
    if differing:
        key = differing[0]
        raise Wrong(f"{len(differing)} verdicts differ from those of run, such as {key}: {watched[key]} {ran[key]}")
    return len(watched), sum(len(found) > 1 for found in watched.values())


def _verdicts(ledger: Path) -> dict[tuple[str, str], list[tuple[str, object]]]:
    """Each subject's verdicts, with their triggers, oldest first."""
    found: dict[tuple[str, str], list[tuple[str, object]]] = {}
    with closing(connect(ledger)) as database:
        rows = database.execute("SELECT payload FROM events WHERE type = 'eval.started'")
        triggers = {begun["eval_id"]: begun["trigger"] for (text,) in rows if (begun := json.loads(text))}
        for (text,) in database.execute("SELECT payload FROM events WHERE type = 'eval.completed' ORDER BY seq"):
            done = json.loads(text)
            signals = {name: value for name, value in done["signals"].items() if name != "child_eval_ids"}
            verdict = (done["score"], done["confidence"], signals)
            found.setdefault((done["subject_kind"], done["subject_id"]), []).append(
                (triggers[done["eval_id"]], verdict)
            )
    return found


def _judged_sessions(ledger: Path) -> int:
    if not _has_begun(ledger):  # every watch may have been killed before it began
        return 0
    query = "SELECT count(DISTINCT subject_id) FROM events WHERE type = 'eval.completed' AND subject_kind = 'session'"
    with closing(connect(ledger)) as database:
        count: int = database.execute(query).fetchone()[0]
    return count


def _has_begun(ledger: Path) -> bool:
    if not ledger.exists():
        return False
    with closing(connect(ledger)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'events'").fetchone()[0]:
            return False
        return bool(database.execute("SELECT count(*) FROM events").fetchone()[0])


def _await(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until *condition* holds.

    :raises Wrong: when it does not in so many seconds.
    """
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise Wrong(f"after {seconds:g} s it was still not so that {condition.__qualname__}")
        time.sleep(0.05)
