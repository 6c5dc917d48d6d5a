"""Expected answers of the API, computed from the rows of a ledger with sqlite3, json and arithmetic, without any reader of dicast's."""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from collections import Counter, defaultdict
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import entry_points
from itertools import combinations
from math import fsum
from statistics import fmean

from dicast import run_kind

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


COLUMNS = "seq, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, payload, prev, digest"
ENDS = ("eval.completed", "eval.failed")
BASES = ("human", "truth", "model", "heuristic", "proxy")
NOISE = 1e-9


def rows_of(path):
    """Every row as a dict, its payload read."""
    with closing(connect(path)) as connection:
        rows = [
            dict(zip(COLUMNS.split(", "), row, strict=True))
            for row in connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY seq")
        ]
        digests = digests_of(connection)
    return [{**row, "payload": json.loads(row["payload"]), "digest": digests.get(row["seq"])} for row in rows]


def digests_of(connection):
    """The digest of each line, by the number of its last event."""
    seq, digest, events, digests = 0, bytes(32), {}, {}
    for size, body in connection.execute("SELECT size, body FROM blocks ORDER BY first"):
        text = zlib.decompress(body) if size != len(body) else body
        for line in text[2:-2].split(b",\n"):
            digest = hashlib.sha256(digest + hashlib.sha256(line).digest()).digest()
            kind, *values = json.loads(line)
            if kind == 1:
                events[hashlib.sha256(line).hexdigest()[:32]] = len(values[2])
            else:
                seq += 1 if kind == 0 else events[values[0]]
                digests[seq] = digest.hex()
    return digests


def instant(time):
    moment = datetime.fromisoformat(time)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def written(time):
    """A time as the API writes it, cut to milliseconds."""
    moment = instant(time).astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def of(rows, *types, run=None, kind=None, judge=()):
    return [
        row
        for row in rows
        if row["type"] in types
        and run in (None, row["run_id"])
        and kind in (None, row["subject_kind"])
        and (not judge or row["payload"].get("judge") in judge)
    ]


def total(amounts):
    return sum(map(Decimal, amounts), Decimal(0))


# Quality -------------------------------------------------------------------------------------------------------------


def model_of(rows, verdict):
    """Return the model whose work a verdict is on: the model recorded for the turn by its own run, else by the last run that recorded one."""
    records = [
        row for row in of(rows, "route.decided", "llm.call_completed") if row["turn_id"] == verdict["subject_id"]
    ]
    records = [
        row for row in records if (row["payload"].get("chosen_model") or row["payload"].get("model")) is not None
    ]
    own_rows = [row for row in records if row["run_id"] == verdict["run_id"]]
    own_rows = own_rows or [row for row in records if row["run_id"] == records[-1]["run_id"]]
    decided = [row["payload"]["chosen_model"] for row in own_rows if row["type"] == "route.decided"]
    called = {row["payload"]["model"] for row in own_rows if row["type"] == "llm.call_completed"}
    return decided[-1] if decided else called.pop() if len(called) == 1 else None


def quality(
    rows,
    start,
    end,
    *,
    kind="turn",
    group_by="model",
    least=0.0,
    floor=0.6,
    judge=(),
    run=None,
    latest=False,
    without_people=False,
):
    """The groups of ``/analytics/quality`` by their key; *without_people* leaves people out, and the groups that have nobody else."""
    inside = [
        row
        for row in of(rows, "eval.completed", run=run, kind=kind, judge=judge)
        if start <= instant(row["time"]) < end
    ]
    if latest:
        inside = list({(row["payload"]["judge"], row["subject_id"]): row for row in inside}.values())
    groups = defaultdict(list)
    for row in inside:
        groups[_key(rows, row, group_by, kind)].append(row)
    people = {key: sum(row["payload"]["judge_kind"] == "human" for row in group) for key, group in groups.items()}
    if without_people:
        groups = {
            key: [row for row in group if row["payload"]["judge_kind"] != "human"] for key, group in groups.items()
        }
    return {
        key: {**_group(rows, group, kind, least, floor), "human_count": people[key]}
        for key, group in groups.items()
        if group
    }


def _key(rows, row, group_by, kind):
    payload = row["payload"]
    if group_by == "model":
        return model_of(rows, row) if kind == "turn" else payload["judge_model"]
    if group_by == "rubric_id":
        return payload["rubric_id"], payload["rubric_version"]
    if group_by == "day":
        return row["time"][:10]
    return payload["judge_kind"] if group_by == "judge_kind" else None


def _group(rows, group, kind, least, floor):
    payloads = [row["payload"] for row in group]
    scores = sorted(payload["score"] for payload in payloads if payload["confidence"] >= least)
    usd, msat = ([payload[name] for payload in payloads] for name in ("judge_cost_usd", "judge_cost_msat"))
    known_usd = total(amount for amount in usd if amount is not None)
    mean = fmean(scores) if scores else None
    figures = {
        "verdict_count": len(group),
        "scored_count": len(scores),
        "mean_score": mean,
        "p50_score": percentile(scores, Fraction(1, 2)),
        "p10_score": percentile(scores, Fraction(1, 10)),
        "mean_confidence": fmean(payload["confidence"] for payload in payloads),
        "judge_cost_usd_total": None if None in usd else known_usd,
        "thumbs_down_count": _down(rows, group, kind),
        "escalated_count": sum(payload["signals"].get("escalated") is True for payload in payloads),
        "budget_exhausted_count": sum(
            payload["signals"].get("escalation_skipped") == "budget_exhausted" for payload in payloads
        ),
        "below_floor": None if mean is None else mean < floor - NOISE,
    }
    if None in usd:
        figures |= {"judge_cost_usd_known": known_usd, "unpriced": usd.count(None)}
    if sum_msat := total(amount for amount in msat if amount is not None):
        figures["judge_cost_msat_total"] = sum_msat
    return figures


def saved(rows, start, end):
    """Return by model the extra cost of judging had every verdict been escalated, for judges that escalate in a run."""

    def escalated(row):
        return row["payload"]["signals"].get("escalated") is True

    verdicts = of(rows, "eval.completed")
    able = {(row["run_id"], row["payload"]["judge"]) for row in verdicts if escalated(row)}
    shares = defaultdict(lambda: [0.0, 0, 0])
    for row in of(verdicts, "eval.completed", kind="turn"):
        judge = row["payload"]["judge"]
        if (row["run_id"], judge) in able and start <= instant(row["time"]) < end:
            share = shares[model_of(rows, row), judge]
            for place, value in enumerate((float(row["payload"]["judge_cost_usd"] or 0), 1, escalated(row))):
                share[place] += value
    extra_costs = defaultdict(float)
    for (model, _), (cost, count, some) in shares.items():
        if some:
            extra_costs[model] += cost * count / some - cost
    return dict(extra_costs)


def percentile(scores, share):
    if not scores:
        return None
    place = (len(scores) - 1) * share
    below = scores[int(place)]
    return below + (scores[min(int(place) + 1, len(scores) - 1)] - below) * float(place - int(place))


def _down(rows, group, kind):
    """The subjects whose last thumb is down; where nobody gave one, those whose judge saw one."""
    thumbs = {}
    for row in sorted(of(rows, "feedback.explicit"), key=lambda row: instant(row["time"])):
        if row["payload"].get("scope", "turn") == kind:
            thumbs[row["payload"].get("subject_turn_id") or row["turn_id"]] = row["payload"]["rating"] == "thumbs_down"
    seen = {
        row["subject_id"]
        for row in group
        if "explicit_thumbs_down" in row["payload"]["signals"].get("flags_negative", ())
    }
    return sum(thumbs.get(id, id in seen) for id in {row["subject_id"] for row in group})


def pricing_version(rows, run=None):
    versions = [row["payload"].get("judge_pricing_version") for row in of(rows, "eval.completed", run=run)]
    return next((version for version in reversed(versions) if version is not None), None)


def open_evals(rows, **chosen):
    ended_evals = {row["payload"]["eval_id"] for row in of(rows, *ENDS)}
    return [row for row in of(rows, "eval.started", **chosen) if row["payload"]["eval_id"] not in ended_evals]


# Cost ----------------------------------------------------------------------------------------------------------------


def cost(rows, *, group_by="model", include_eval=False, run=None):
    """``(groups, total, lost)`` of ``/analytics/cost``; a sum is ``{usd, msat, calls, tokens, unpriced}``."""
    spends = list(_calls(rows, group_by, run))
    if include_eval:
        spends += _settled(rows, group_by, run)
    groups = defaultdict(list)
    for key, *spend in spends:
        groups[key].append(spend)
    lost = _lost(rows, run) if include_eval else {}
    return {key: _sum(group) for key, group in groups.items()}, _sum([spend for _, *spend in spends]), lost


def _calls(rows, group_by, run):
    """Return the agent's own calls. A call recorded by several runs was made once, in the first of them."""
    first = {}
    for row in of(rows, "llm.call_completed", run=run):
        payload = row["payload"]
        call = json.dumps([row["session_id"], row["turn_id"], payload], sort_keys=True)
        if first.setdefault(call, row["run_id"]) != row["run_id"]:
            continue
        amount, usage = payload.get("cost_usd"), payload.get("usage")
        key = {"model": payload.get("model"), "session": row["session_id"], "day": _day(row)}.get(group_by)
        tokens = None if usage is None else usage["input_tokens"] + usage["output_tokens"]
        yield key, None if amount is None else Decimal(str(amount)), "usd", 1, tokens


def _settled(rows, group_by, run):
    for row in of(rows, "spend.settled", run=run):
        payload = row["payload"]
        amount = None if payload["amount"] is None else Decimal(payload["amount"])
        keys = {"model": payload.get("model"), "judge": payload.get("judge"), "session": row["session_id"]}
        keys |= {"day": _day(row), "rubric": _rubric(rows, payload.get("eval_id"))}
        calls = payload.get("calls") or int(amount is None or amount != 0)
        yield keys[group_by], amount, payload["unit"], calls, payload.get("tokens")


def _rubric(rows, eval_id):
    """Return the rubric of a verdict, else of the start of its evaluation."""
    payloads = [
        row["payload"] for row in of(rows, "eval.completed", "eval.started") if row["payload"]["eval_id"] == eval_id
    ]
    return payloads[-1]["rubric_id"] if payloads else None


def _day(row):
    return instant(row["time"]).astimezone(UTC).date().isoformat()


def _sum(spends):
    sums = {
        unit: total(amount for amount, of_, *_ in spends if of_ == unit and amount is not None)
        for unit in ("usd", "msat")
    }
    tokens = [tokens for *_, tokens in spends if tokens is not None]
    return {
        **sums,
        "calls": sum(calls for *_, calls, _ in spends),
        "tokens": sum(tokens) if tokens else None,
        "unpriced": sum(amount is None for amount, *_ in spends),
    }


def _lost(rows, run):
    """Return lost reservations by unit: amounts that no later event of the reservation settles."""
    last = {}
    for row in of(rows, "spend.lost", "spend.settled", "spend.released", run=run):
        last[row["payload"]["reservation_id"]] = row
    sums = defaultdict(Decimal)
    for row in last.values():
        if row["type"] == "spend.lost":
            sums[row["payload"]["unit"]] += Decimal(row["payload"]["amount"])
    return {unit: amount for unit, amount in sums.items() if amount}


# Agreement -----------------------------------------------------------------------------------------------------------


def ratings(rows, judges, *, kind=None, runs=()):
    """``(units, contents)``: by subject the newest row of each judge, a score before a failure, and how many contents were read."""
    chosen = [row for row in of(rows, *ENDS, kind=kind, judge=judges) if not runs or row["run_id"] in runs]
    units = defaultdict(dict)
    for row in chosen:
        had = units[row["subject_id"], row["subject_kind"]]
        judge, old = row["payload"]["judge"], had.get(row["payload"]["judge"])
        if row["type"] == "eval.completed" or old is None or old["type"] == "eval.failed":
            had[judge] = row
    reads = [row for row in of(rows, "subject.read") if not runs or row["run_id"] in runs]
    contents = defaultdict(set)
    for row in reads:
        contents[row["subject_id"], row["subject_kind"]].add(row["payload"]["digest"])
    started = [row for row in of(rows, "run.started") if not runs or row["run_id"] in runs]
    several = len(started) > 1 or any(row["payload"].get("live") for row in started)
    return units, {place: len(digests) if several else 1 for place, digests in contents.items()}, reads


def scored(rows, judges, **chosen):
    """Return each subject's ``(place, scores, apart, rows, contents)``, in the order of ids: scores of one content, and of other contents apart."""
    units, contents, reads = ratings(rows, judges, **chosen)
    for place in sorted(units):
        judge_rows = {judge: units[place][judge] for judge in judges if judge in units[place]}
        about = {judge: _content(reads, place, row) for judge, row in judge_rows.items()}
        values = {
            judge: row["payload"]["score"] if row["type"] == "eval.completed" else None
            for judge, row in judge_rows.items()
        }
        if contents.get(place, 1) < 2:
            yield place, values, {}, judge_rows, 1
            continue
        count = Counter(about[judge] for judge, value in values.items() if value is not None)
        ranked = [
            (count[about[judge]], judge_rows[judge]["seq"], judge)
            for judge, value in values.items()
            if value is not None
        ]
        main = about[max(ranked)[2]] if ranked else None
        apart_scores = {judge: value for judge, value in values.items() if value is not None and about[judge] != main}
        yield (
            place,
            {judge: value for judge, value in values.items() if judge not in apart_scores},
            apart_scores,
            judge_rows,
            contents[place],
        )


def _content(reads, place, row):
    before = [
        read
        for read in reads
        if (read["subject_id"], read["subject_kind"]) == place
        and read["run_id"] == row["run_id"]
        and read["seq"] < row["seq"]
    ]
    return before[-1]["payload"]["digest"] if before else None


def agreement(rows, judges, *, window=0.15, worst=10, **chosen):
    """The figures of ``/analytics/agreement``."""
    subjects = list(scored(rows, judges, **chosen))
    units = []
    for place, values, _, disagreements, contents in subjects:
        scores_by_judge = {judge: value for judge, value in values.items() if value is not None}
        if len(scores_by_judge) > 1:
            units.append((place, scores_by_judge, disagreements, contents))
    scores = [list(scores_by_judge.values()) for _, scores_by_judge, _, _ in units]
    spreads = [max(ratings_of_judge) - min(ratings_of_judge) for ratings_of_judge in scores]
    all_scores = {judge: [] for judge in judges}
    for _, values, apart_scores, _, _ in subjects:
        for judge, value in {**values, **apart_scores}.items():
            all_scores[judge].append(value)
    compared = {
        judge: [scores_by_judge[judge] for _, scores_by_judge, _, _ in units if judge in scores_by_judge]
        for judge in judges
    }
    passes = {
        judge: sum(value >= 0.5 - NOISE for value in ratings_of_judge) for judge, ratings_of_judge in compared.items()
    }
    n = sum(map(len, compared.values()))
    disagreements = sorted(((round(spread, 9), place, scores_by_judge) for spread, (place, scores_by_judge, *_) in zip(spreads, units, strict=True)),
                   key=lambda item: (-item[0], item[1]))  # fmt: skip
    return {
        "n": len(units),
        "within": fmean(spread <= window + NOISE for spread in spreads) if units else None,
        "kappa": _kappa(units, judges),
        "alpha": alpha(scores),
        "alpha_ci": _interval(scores),
        "base_rate": sum(passes.values()) / n if n else None,
        "failures": {
            judge: {
                "n": len(ratings_of_judge),
                "failed": ratings_of_judge.count(None),
                "rate": ratings_of_judge.count(None) / len(ratings_of_judge),
            }
            for judge, ratings_of_judge in all_scores.items()
            if ratings_of_judge
        },
        "worst": [
            {"subject_kind": place[1], "subject_id": place[0], "difference": spread, "scores": scores_by_judge}
            for spread, place, scores_by_judge in disagreements[:worst]
            if spread > NOISE
        ],
        "different_content": sum(bool(apart_scores) for _, _, apart_scores, _, _ in subjects),
        "several_contents": sum(contents > 1 for *_, contents in units),
        "raters": {
            judge: {
                "n": len(ratings_of_judge),
                "base_rate": passes[judge] / len(ratings_of_judge) if ratings_of_judge else None,
            }
            for judge, ratings_of_judge in compared.items()
            if all_scores[judge]
        },
    }


def _kappa(units, judges):
    """Cohen's kappa on scores cut at .5; of more than two judges the mean over pairs that have one."""
    kappas = []
    for first, second in combinations(judges, 2):
        pairs = [
            (scores_by_judge[first] >= 0.5 - NOISE, scores_by_judge[second] >= 0.5 - NOISE)
            for _, scores_by_judge, *_ in units
            if {first, second} <= scores_by_judge.keys()
        ]
        if not pairs:
            continue
        p, q = (Fraction(sum(column), len(pairs)) for column in zip(*pairs, strict=True))
        chance = p * q + (1 - p) * (1 - q)
        if chance != 1:
            kappas.append((Fraction(sum(a == b for a, b in pairs), len(pairs)) - chance) / (1 - chance))
    return float(sum(kappas) / len(kappas)) if kappas else None


def alpha(units):
    """Krippendorff's alpha with the interval metric, in exact arithmetic."""
    units = [[Fraction(value) for value in unit] for unit in units]
    values = [value for unit in units for value in unit]
    n = len(values)
    expected = sum((a - b) ** 2 for a, b in combinations(values, 2))
    if not expected:
        return None
    observed = sum(sum((a - b) ** 2 for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in units)
    return float(1 - (n - 1) * observed / expected)


def _interval(units):
    """The percentile bootstrap over subjects as the answer says that it was made: 2,000 resamples, seed 0."""
    if len(units) < 2 or alpha(units) is None:
        return None
    draw, parts = random.Random(0), []
    for unit in units:
        mean = fsum(unit) / len(unit)
        spread_sum = len(unit) * fsum((value - mean) ** 2 for value in unit) / (len(unit) - 1)
        parts.append((spread_sum, fsum(unit), fsum(value * value for value in unit), len(unit)))
    alphas = []
    for _ in range(2000):
        spread_sum, sums, squares, count = (
            fsum(column) for column in zip(*draw.choices(parts, k=len(parts)), strict=True)
        )
        expected = count * squares - sums * sums
        if expected > 1e-12 * count * squares:
            alphas.append(1 - (count - 1) * spread_sum / expected)
    if len(alphas) < 1500:
        return None
    return [percentile(sorted(alphas), Fraction(1, 40)), percentile(sorted(alphas), Fraction(39, 40))]


def agreement_days(rows, judges, *, window=0.15, **chosen):
    days = defaultdict(list)
    for _, values, _, agreements, _ in scored(rows, judges, **chosen):
        scores_by_judge = {judge: value for judge, value in values.items() if value is not None}
        if len(scores_by_judge) > 1:
            day = (
                max(instant(agreements[judge]["time"]) for judge in scores_by_judge).astimezone(UTC).date().isoformat()
            )
            days[day].append(max(scores_by_judge.values()) - min(scores_by_judge.values()) <= window + NOISE)
    return [{"day": day, "n": len(agreements), "within": fmean(agreements)} for day, agreements in sorted(days.items())]


# The rest ------------------------------------------------------------------------------------------------------------


def backlog(rows, *, kind=None, run=None):
    """Return started evaluations without an end, by judge and kind; and completed turns that their live watches have not judged."""
    open_rows = open_evals(rows, kind=kind, run=run)
    by = defaultdict(list)
    for row in open_rows:
        by[row["payload"]["judge"], row["subject_kind"]].append(row["time"])
    ended_runs = {row["run_id"] for row in of(rows, "run.completed")}
    watches = {row["run_id"] for row in of(rows, "run.started", run=run) if row["payload"].get("live")} - ended_runs
    judged = {(row["run_id"], row["subject_id"]) for row in of(rows, *ENDS)}
    waiting = [
        row["time"]
        for row in of(rows, "turn.completed")
        if row["run_id"] in watches and (row["run_id"], row["turn_id"]) not in judged
    ]
    return {
        "open": len(open_rows),  # runs without a lease count as running
        "interrupted": 0,
        "resume_commands": [],
        "waiting": {"turns": len(waiting), "oldest": min(waiting, default=None), "more": False},
        "data": [
            {"judge": judge, "subject_kind": kind, "open": len(times), "interrupted": 0, "oldest": times[0]}
            for (judge, kind), times in sorted(by.items())
        ],
    }


def judges(rows):
    return Counter(
        (row["payload"]["judge"], row["subject_kind"], row["payload"].get("judge_kind")) for row in of(rows, *ENDS)
    )


OF_A_LABEL = ("mean", "pass_rate", "scored", "failed", "total")


def runs(rows):
    """Return the runs, newest start first; no run holds a lease."""
    documents = []
    for start in reversed(of(rows, "run.started")):
        end = next(iter(reversed(of(rows, "run.completed", "run.stopped", run=start["run_id"]))), None)
        done = {} if end is None else end["payload"]
        score = done.get("score") or {}
        bases = [basis for basis, count in (score.get("by_basis") or {}).items() if count]
        state = "dead" if end is None else end["type"].removeprefix("run.")
        documents.append(
            {
                "run_id": start["run_id"],
                "name": start["payload"]["name"],
                "kind": run_kind(start["payload"]),
                "started_at": start["time"],
                "ended_at": None if end is None else end["time"],
                "state": state,
                **{name: done.get(name) for name in ("subjects", "scored")},
                "cost": done.get("cost") if end else settled_cost(rows, start["run_id"]),
                "unsettled": unsettled_cost(rows, start["run_id"], done),
                "score": score.get("mean"),
                "score_label": score.get("label"),
                "only_metric": _only_metric(done),
                "basis": max(bases, key=BASES.index, default=None),
                "labels": {
                    label: {name: figures.get(name) for name in OF_A_LABEL} for label, figures in _labels(done).items()
                },
                "gate": _gate(done.get("gate")),
                "gate_label": None if end is None else _gate_label(done),
            }
        )
    return documents


def _only_metric(done):
    """Return the only metric, if all metrics together have its mean and its passes."""
    whole, metrics = _labels(done).get("metrics"), done.get("metrics") or {}
    names = [
        name
        for name, own in metrics.items()
        if whole and all(own.get(key) == whole.get(key) for key in ("mean", "passes"))
    ]
    return names[0] if len(metrics) == len(names) == 1 else None


UNITS = ("usd", "msat")


def settled_cost(rows, run):
    """Return the settled amounts of a run by unit; None for a unit with an unknown amount."""
    payloads = [row["payload"] for row in of(rows, "spend.settled", run=run)]
    amounts = {unit: [payload["amount"] for payload in payloads if payload["unit"] == unit] for unit in UNITS}
    return {unit: None if None in texts else str(sum(map(Decimal, texts))) for unit, texts in amounts.items()}


def unsettled_cost(rows, run, done):
    """Return the open and lost reservations of a run by unit; the lost amounts of a completed run are taken from its document."""
    last = {}
    for row in of(rows, "spend.reserved", "spend.lost", "spend.settled", "spend.released", run=run):
        last[row["payload"]["reservation_id"]] = row
    sums = {unit: Decimal((done.get("spend_lost") or {}).get(unit) or 0) for unit in UNITS}
    for row in last.values():
        if row["type"] == "spend.reserved" or (row["type"] == "spend.lost" and not done):
            sums[row["payload"]["unit"]] += Decimal(row["payload"]["amount"])
    return {unit: str(amount) for unit, amount in sums.items()}


def _gate_label(done):
    labels = [*_labels(done), *(done.get("metrics") or {})]
    clauses = (done.get("gate") or {}).get("clauses") or []
    not_passed = [clause["on"] for clause in clauses if clause["passed"] is not True]
    score_label = (done.get("score") or {}).get("label")
    for name in (*not_passed, *(clause["on"] for clause in clauses), score_label, *labels):
        if name in labels:
            return name
    return None


def _labels(done):
    """Return the labels of a document. An older document has its score's labels, with the counts of the run, and its judges'."""
    if "labels" in done or not done:
        return done.get("labels", {})
    score = done.get("score") or {}
    score_labels = {}
    if "label" in score:
        total = done["scored"] + done["failed"] + done.get("unaffordable", 0)
        score_labels = {score["label"]: {**score, "scored": done["scored"], "failed": done["failed"], "total": total}}
    return score_labels | {
        label: figures for label, figures in (done.get("judges") or {}).items() if label not in score_labels
    }


def _gate(gate):
    if gate is None or not gate["clauses"] or not gate.get("given", True):
        return None
    return {True: "passed", False: "failed", None: "undecided"}[gate["passed"]]


def run_rows(rows, run, *, judge=(), kind=None, low=None, high=None, failed=None, order="seq"):
    """The rows of ``/runs/{run_id}/rows``."""
    documents = []
    for row in of(rows, *ENDS, run=run, kind=kind, judge=judge):
        payload, missed = row["payload"], row["type"] == "eval.failed"
        if failed not in (None, missed) or (missed and (low, high) != (None, None)):
            continue
        if not missed and not (low is None or payload["score"] >= low) & (high is None or payload["score"] <= high):
            continue
        get = (lambda name: None) if missed else payload.get
        verdict_fields = {
            name: get(name)
            for name in ("score", "confidence", "judge_kind", "judge_model", "rubric_id", "rubric_version")
        }
        money = {
            name: None if (amount := get(name)) is None else Decimal(amount)
            for name in ("judge_cost_usd", "judge_cost_msat")
        }
        where = {name: row[name] for name in ("seq", "run_id", "subject_kind", "subject_id")}
        documents.append(
            {
                **where,
                "judge": payload["judge"],
                "failed": missed,
                **verdict_fields,
                **money,
                "created_at": written(row["time"]),
            }
        )
    if order == "score":
        documents.sort(key=lambda row: (not row["failed"], row["score"] or 0.0, row["seq"]))
    return documents


def scores_of(rows, run, label):
    """The scores that one judge has given in a run."""
    return [row["payload"]["score"] for row in of(rows, "eval.completed", run=run, judge=(label,))]


def differing(rows, a, b):
    """Return the differences between the starts of two runs, by name in the pipeline."""
    first, second = (of(rows, "run.started", run=run)[0]["payload"]["fingerprints"] for run in (a, b))
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def scored_in(rows, run):
    return {row["subject_id"] for row in of(rows, "eval.completed", run=run)}


def flips(rows, a, b, label):
    """Return the subjects that *label* scored in both runs, and the subset that passes in only one."""
    scores = [
        {row["subject_id"]: row["payload"]["score"] for row in of(rows, "eval.completed", run=run, judge=(label,))}
        for run in (a, b)
    ]
    pairs = [[id, scores[0][id], scores[1][id]] for id in scores[0] if id in scores[1]]
    passed = [[score >= 0.5 - NOISE for score in pair[1:]] for pair in pairs]
    return {pair[0] for pair in pairs}, [pair for pair, (was, now) in zip(pairs, passed, strict=True) if was != now]
