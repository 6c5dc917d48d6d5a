"""Random ledgers with the features of real ones: runs of traces, dead and resumed runs, watches, failures, two units of money."""

from __future__ import annotations

import asyncio
import json
import random
from importlib.metadata import entry_points
from itertools import count

import attrs
from starlette.testclient import TestClient

import dicast
from dicast import Cost, Event, Failure, Judgment, Rubric
from dicast_serve.application import application
from dicast_serve.guard import Tokens

from .serving import LABELLING, READING

HOST = "127.0.0.1:8600"
MODELS = ("small", "large", None)
SCORES = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0, 0.123456789)
TEXTS = ("Where is order 4417?", "שלום", "🦊" * 3, "<script>alert(1)</script>", "NaN")


@attrs.frozen
class Dice:
    """A judge whose verdict depends on its seed and the subject's id alone."""

    seed: int = 0
    unit: str = "usd"
    kind: str = "llm"
    fails: float = 0.1

    accepts = ("turn",)
    needs_output = False

    @property
    def judge_kind(self):
        return self.kind

    def estimate(self, subject):
        return Cost("0.001" if self.unit == "usd" else "1500", self.unit)

    def judge(self, subject, children):
        draw = random.Random(f"{self.seed}/{subject.id}")
        amount = "0.0007300" if self.unit == "usd" else "1234"
        cost = Cost.zero() if self.kind == "heuristic" else Cost(amount, self.unit, pricing_version=f"v{self.seed}")
        if draw.random() < self.fails:
            return Failure("judge_output_invalid", "no verdict in the reply", cost=cost)
        signals = draw.choice(
            [
                {},
                {"escalated": True},
                {"flags_negative": ["explicit_thumbs_down"]},
                {"escalation_skipped": "budget_exhausted"},
                {"rationale_redacted": "because of it"},
            ]
        )
        model = None if self.kind == "heuristic" else f"grader-{self.seed}"
        return Judgment(
            *(draw.choice(SCORES), draw.choice((0.1, 0.5, 1.0)), self.kind, model, cost),
            signals=signals,
            rubric=Rubric(f"rubric-{self.seed % 3}", "1.0"),
        )


def trace(draw, sessions, day):
    """The events of an agent; of some turns nobody knows the model, of some calls nobody knows the price."""
    for session in sessions:
        for turn in range(1, draw.randint(2, 5)):
            at = iter(f"2026-03-{day:02}T12:{turn:02}:{second:02}.000Z" for second in range(60))
            place = {"session_id": session, "turn_id": f"{session}/{turn}"}
            texts = {"user_prompt_text": draw.choice(TEXTS), "final_response_text": draw.choice(TEXTS)}
            model = draw.choice(MODELS)
            if model is not None and draw.random() < 0.8:
                yield {"type": "route.decided", "time": next(at), **place, "payload": {"chosen_model": model}}
            for _ in range(draw.randint(0, 2)):
                call = {"model": model or "other", "cost_usd": draw.choice(["0.0012", "0.00030", None, 0.25])}
                usage = {"input_tokens": draw.randint(1, 99), "output_tokens": 7} if draw.random() < 0.7 else {}
                payload = call | ({"usage": usage} if usage else {})
                yield {"type": "llm.call_completed", "time": next(at), **place, "payload": payload}
            if draw.random() < 0.3:
                rating = draw.choice(["thumbs_up", "thumbs_down"])
                thumb = {"scope": "turn", "subject_turn_id": place["turn_id"], "rating": rating}
                yield {"type": "feedback.explicit", "time": next(at), **place, "payload": thumb}
            payload = {"stop_reason": draw.choice(["end_turn", "max_tokens"]), "signals_extra": texts}
            yield {"type": "turn.completed", "time": next(at), **place, "payload": payload}


def make(folder, seed):
    """The path of the ledger of *seed*, made in *folder*."""
    draw = random.Random(seed)
    path = folder / "ledger.db"
    for day in range(1, draw.randint(1, 3) + 1):
        lines = list(trace(draw, [f"s{number}" for number in range(draw.randint(1, 4))], draw.randint(1, 3)))
        source = folder / f"{day}.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for again in range(draw.randint(1, 2)):
            judges = {
                "a": {"seed": seed + again, "kind": "llm"},
                "b": {"seed": seed + 7, "unit": "msat", "kind": draw.choice(["llm", "hybrid"])},
                "c": {"seed": draw.randint(0, 9), "kind": "heuristic", "fails": draw.choice([0.0, 0.5])},
            }
            chosen = draw.sample(sorted(judges), draw.randint(2, 3)) if again else sorted(judges)
            dicast.run(
                {
                    "name": f"nightly {day}",
                    "source": {"traces/events": {"path": str(source), "subjects": ["turn"]}},
                    "judges": [{f"judge-{name}": {"as": name}} for name in sorted({"a", *chosen})],
                    "define": {f"judge-{name}": Dice(**options) for name, options in judges.items()},
                    "gate": {"on": "a", "min_score": draw.choice([0.1, 0.9]), "min_coverage": 0.5},
                    "budget": {"run": ["2 usd", "9000000 msat"]},
                    "ledger": {"ledger/sqlite": {"path": str(path)}},
                }
            )
    written = _Written(draw)
    written.make()
    _append(path, written.events[: len(written.events) // 2])
    _label(path, draw)
    _append(path, written.events[len(written.events) // 2 :])
    return path


def _append(path, events):
    ledger = entry_points(group="dicast")["ledger"].load().Sqlite(path)

    async def write():
        async with ledger.open() as live:
            for start in range(0, len(events), 5):
                live.append(events[start : start + 5])

    asyncio.run(write())


def _label(path, draw):
    """Some verdicts of people."""
    with client(path) as asking:
        rows = asking.get("/runs/last/rows?subject_kind=turn").json()["data"]
        for row in draw.sample(rows, min(len(rows), 4)):
            body = {
                "subject_id": row["subject_id"],
                "score": draw.choice(SCORES),
                "judge": draw.choice(["human", "ann"]),
            }
            done = asking.post("/labels", json=body, headers={"authorization": f"Bearer {LABELLING}"})
            assert done.status_code in (201, 404), done.text


def client(path):
    """Asks the application over the ledger at *path*."""
    asking = TestClient(application([path], Tokens(READING, LABELLING), [HOST], "dicast"), f"http://{HOST}")
    asking.headers["authorization"] = f"Bearer {READING}"
    return asking


class _Written:
    """Events as no run of this machine writes them: runs that died, were resumed, or go on; odd times; amounts of any size."""

    def __init__(self, draw):
        self.draw, self.events, self._numbers = draw, [], count(1)

    def tell(self, type, payload, run_id, time=None, **columns):
        at = time or f"2026-03-{self.draw.randint(1, 3):02}T{self.draw.randint(0, 23):02}:00:00.000Z"
        self.events.append(Event(f"01WRITTEN{next(self._numbers):017}", type, at, run_id, payload, **columns))

    def start(self, run_id, *, live=False):
        payload = {"name": "written", "live": live, "fingerprints": {}, "judges": ["a", "c"], "metrics": []}
        self.tell("run.started", payload, run_id)

    def make(self):
        first, second, watch = "01WRITTENRUNA0000000000000", "01WRITTENRUNB0000000000000", "01WRITTENRUNW0000000000000"
        self.start(first)
        self.judge(first, 6)
        self.start(second)
        self.judge(second, 5)
        self.judge(first, 4)  # it was resumed
        self.end(first, "run.completed")
        self.start(watch, live=True)
        for number in range(self.draw.randint(0, 4)):
            turn = {"session_id": "w", "turn_id": f"w/{number}"}
            self.tell("turn.completed", {"stop_reason": "end_turn"}, watch, **turn)
            if self.draw.random() < 0.5:
                self.verdict(watch, f"w/{number}", "a")
        if self.draw.random() < 0.5:
            self.end(second, "run.stopped")

    def end(self, run_id, type):
        score = self.draw.choice([None, {"mean": 0.25, "by_basis": {"human": 0, "model": 2, "proxy": 1}}])
        passed = self.draw.choice([True, False, None])
        gate = {"passed": passed, "reasons": [], "clauses": [{"on": "a", "rule": "min_score", "passed": passed}]}
        done = {
            "name": "written",
            "subjects": 6,
            "scored": 4,
            "score": score,
            "gate": gate,
            "cost": {"usd": None, "msat": "7"},
        }
        self.tell(type, done, run_id)

    def judge(self, run_id, count):
        for _ in range(count):
            id = f"s{self.draw.randint(0, 3)}/{self.draw.randint(1, 4)}"
            digest = self.draw.choice(["0", "1"]) * 64
            read = {"digest": digest, "content": {"output": f"text {digest[0]}"}}
            kind = self.draw.choice(["turn", "turn", "session"])
            about = {"subject_kind": kind, "subject_id": id, "session_id": id[:2]}
            self.tell("subject.read", read, run_id, **about)
            self.verdict(run_id, id, self.draw.choice("ac"), kind)

    def verdict(self, run_id, id, judge, kind="turn"):
        draw, about = self.draw, {"subject_kind": kind, "subject_id": id, "session_id": id.partition("/")[0]}
        eval_fields = {
            "eval_id": f"01WRITTEN{next(self._numbers):017}",
            "subject_kind": kind,
            "subject_id": id,
            "judge": judge,
        }
        rubric = {"rubric_id": f"rubric-{draw.randint(0, 2)}", "rubric_version": draw.choice(["1.0", "1.1"])}
        self.tell("eval.started", {**eval_fields, **rubric}, run_id, **about)
        reserved = {"reservation_id": eval_fields["eval_id"], "eval_id": eval_fields["eval_id"]}
        amount = draw.choice(["0.01", "0.00000000000000000123", "0.005"])
        self.tell("spend.reserved", {**reserved, "amount": "0.01", "unit": "usd", "scopes": {}}, run_id, **about)
        if draw.random() < 0.2:
            self.tell("spend.lost", {**reserved, "amount": "0.01", "unit": "usd"}, run_id, **about)
        if draw.random() < 0.7:
            paid = {"amount": amount, "unit": "usd", "model": draw.choice([None, "grader"]), "judge": judge}
            self.tell("spend.settled", {**reserved, **paid, "tokens": draw.choice([None, 12])}, run_id, **about)
        if draw.random() < 0.2:
            return
        if draw.random() < 0.2:
            self.tell(
                "eval.failed", {**eval_fields, "failure_mode": "timeout", "error_message": "late"}, run_id, **about
            )
            return
        cost = draw.choice([None, amount, "0"])
        money = {"judge_cost_usd": cost, "judge_cost_msat": draw.choice(["0", "21000"]), "judge_latency_ms": 3}
        judge_fields = {"judge_kind": draw.choice(["llm", "heuristic"]), "judge_model": draw.choice([None, "grader"])}
        figures = {"score": draw.choice(SCORES), "confidence": draw.choice((0.1, 0.5, 1.0)), "signals": {}}
        verdict_fields = {
            "basis": "model",
            "calibrated": False,
            "tier": "truth",
            "truth_reason": None,
            "propensity": None,
        }
        verdict_fields |= {
            "scores": [],
            "skipped": [],
            "fingerprint": "f" * 64,
            "judge_pricing_version": None,
            "parent_eval_id": None,
        }
        time = draw.choice([None, None, "2026-03-02T05:06:07", "2026-03-02T05:06:07.123456+02:00"])
        self.tell(
            "eval.completed",
            {**eval_fields, **rubric, **money, **judge_fields, **figures, **verdict_fields},
            run_id,
            time,
            **about,
        )
