"""Every figure of every route, on random ledgers, equals the figure that ``oracle.py`` computes from the ledger's rows."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise

import pytest

from dicast.reporting import current_document

from . import oracle
from .random_ledgers import client, make

pytestmark = pytest.mark.slow

SEEDS = range(10)
START, END = datetime(2026, 3, 2, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
WINDOW = "from=2026-03-02&to=2030-01-01"
EXACT = 1.01e-6
"""Numbers have six decimals: half a unit of the last one, from either side."""


class Api:
    """The answers of the API over one ledger, and the rows of that ledger."""

    def __init__(self, asking, path):
        self.asking, self.rows = asking, oracle.rows_of(path)
        self.runs = [row["run_id"] for row in oracle.of(self.rows, "run.started")]

    def get(self, path, status=200):
        answer = self.asking.get(path)
        assert answer.status_code == status, (path, answer.text)
        return answer.json()


@pytest.fixture(scope="module")
def apis(tmp_path_factory):
    """Return a function of a seed to its API, made once: the order of the tests changes the seed more than once."""
    with ExitStack() as stack:

        @cache
        def api_of(seed):
            path = make(tmp_path_factory.mktemp(f"ledger{seed}"), seed)
            return Api(stack.enter_context(client(path)), path)

        yield api_of


@pytest.fixture(params=SEEDS)
def api(request, apis):
    return apis(request.param)


def near(value):
    """*value* as the API has it: numbers to six decimals, amounts of money as text."""
    if isinstance(value, dict):
        return {name: near(item) for name, item in value.items()}
    if isinstance(value, list):
        return [near(item) for item in value]
    return pytest.approx(value, abs=EXACT, rel=0) if isinstance(value, float) else value


def money(document):
    """*document* with its amounts as numbers."""
    amounts = ("usd", "msat")
    return {
        name: Decimal(value) if isinstance(value, str) and any(unit in name for unit in amounts) else value
        for name, value in document.items()
    }


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {}),
        ("&subject_kind=session", {"kind": "session"}),
        ("&group_by=judge_kind&min_confidence=0.5", {"group_by": "judge_kind", "least": 0.5}),
        ("&group_by=day", {"group_by": "day"}),
        ("&group_by=rubric_id&latest=true", {"group_by": "rubric_id", "latest": True}),
        ("&without_human=true", {"without_people": True}),
        (
            "&without_human=true&group_by=judge_kind&latest=true",
            {"group_by": "judge_kind", "latest": True, "without_people": True},
        ),
        ("&group_by=none&judge=a&judge=b&floor=0.5", {"group_by": "none", "judge": ("a", "b"), "floor": 0.5}),
    ],
)
def test_quality(api, query, options):
    document = api.get(f"/analytics/quality?{WINDOW}{query}")
    expected = oracle.quality(api.rows, START, END, **options)
    assert (expected != {}) or document["data"] in ([], [{**document["data"][0], "verdict_count": 0}])
    assert {_key(row): money(_figures(row)) for row in document["data"] if row["verdict_count"]} == near(expected)
    in_order = [(first.get("day", -first["verdict_count"]), second.get("day", -second["verdict_count"])) for first, second in pairwise(document["data"])]  # fmt: skip
    assert all(first <= second for first, second in in_order)
    assert document["current_pricing_version"] == oracle.pricing_version(api.rows)
    chosen = {"kind": options.get("kind", "turn"), "judge": options.get("judge", ())}
    open_rows = [row for row in oracle.open_evals(api.rows, **chosen) if START <= oracle.instant(row["time"]) < END]
    assert document["backlog"] == len(open_rows)


def _key(row):
    if "rubric_id" in row:
        return row["rubric_id"], row["rubric_version"]
    return row.get("chosen_model", row.get("day", row.get("judge_kind")))


def _figures(row):
    names = ("chosen_model", "judge_model", "judge_kind", "day", "rubric_id", "rubric_version")
    return {name: value for name, value in row.items() if name not in names}


def test_quality_of_one_run(api):
    for run in api.runs:
        document = api.get(f"/analytics/quality?{WINDOW}&run={run}")
        expected = oracle.quality(api.rows, START, END, run=run)
        assert {row["chosen_model"]: money(_figures(row)) for row in document["data"]} == near(expected)
        assert document["current_pricing_version"] == oracle.pricing_version(api.rows, run)


ALL_TIME = "&from=2000-01-01&to=2100-01-01"
"""A window around all events, in place of the last seven days."""


@pytest.mark.parametrize("group_by", ["model", "judge", "rubric", "session", "day"])
@pytest.mark.parametrize("include_eval", [False, True])
def test_cost(api, group_by, include_eval):
    for run in (None, *(api.runs if group_by == "model" else api.runs[-3:])):
        query = f"group_by={group_by}&include_eval={str(include_eval).lower()}{f'&run={run}' if run else ALL_TIME}"
        document = money(api.get(f"/analytics/cost?{query}"))
        groups, total, lost = oracle.cost(api.rows, group_by=group_by, include_eval=include_eval, run=run)
        assert {row[group_by]: _spent(money(row)) for row in document["data"]} == groups
        named = {"usd": document["total_usd"], "calls": total["calls"], "tokens": total["tokens"]}
        figures = {name: document[source] for name, source in (("msat", "total_msat"), ("unpriced", "unpriced"), ("known_usd", "known_usd")) if source in document}  # fmt: skip
        assert _spent(named | figures) == total
        assert {unit: document[f"lost_{unit}"] for unit in ("usd", "msat") if f"lost_{unit}" in document} == lost


def _spent(row):
    """Return a sum in the oracle's shape. A sum with an unknown price has no ``usd`` and reports the known part."""
    assert (row["usd"] is None) == (row.get("unpriced", 0) > 0)
    known_usd = row["known_usd"] if row["usd"] is None else row["usd"]
    counts = {"calls": row["calls"], "tokens": row["tokens"], "unpriced": row.get("unpriced", 0)}
    return {"usd": known_usd, "msat": row.get("msat", Decimal(0)), **counts}


def test_savings(api):
    document = api.get(f"/analytics/savings?{WINDOW}")
    expected, (spent, _, _) = oracle.quality(api.rows, START, END), oracle.cost(api.rows)
    extra_costs = oracle.saved(api.rows, START, END)
    assert {row["chosen_model"] for row in document["data"]} == set(expected)
    for row in document["data"]:
        group, agent = expected[row["chosen_model"]], spent.get(row["chosen_model"])
        paid, saved = group["judge_cost_usd_total"], extra_costs.get(row["chosen_model"])
        names = (
            "verdict_count",
            "scored_count",
            "mean_score",
            "p50_score",
            "p10_score",
            "below_floor",
            "escalated_count",
        )
        assert {name: row[name] for name in names} == near({name: group[name] for name in names})
        saved = None if paid is None else saved
        escalated_cost = None if saved is None else float(paid) + saved
        figures = money(row)
        assert figures["judge_cost_usd_total"] == paid
        for name, value in (("all_escalated", escalated_cost), ("saved", saved)):
            amount = figures[f"judge_cost_usd_{name}"]
            assert (None if amount is None else float(amount)) == near(value)
        calls, tokens = (None, None) if agent is None else (agent["calls"], agent["tokens"])
        assert (row["agent_calls"], row["agent_tokens"]) == (calls, tokens)
        assert figures["agent_usd_total"] == (None if agent is None or agent["unpriced"] else agent["usd"])


@pytest.mark.parametrize(
    ("names", "kind", "window"), [("ac", None, 0.15), ("ac", "turn", 0.0), ("ab", "turn", 0.5), ("abc", "turn", 0.3)]
)
def test_agreement(api, names, kind, window):
    judges = [name for name in names if oracle.of(api.rows, *oracle.ENDS, judge=(name,), kind=kind)]
    query = "&".join(
        [*(f"judge={judge}" for judge in judges), f"window={window}", *([f"subject_kind={kind}"] if kind else [])]
    )
    document = api.get(f"/analytics/agreement?{query}")
    expected = oracle.agreement(api.rows, judges, window=window, kind=kind)
    assert {name: document[name] for name in expected} == near(expected)
    days = api.get(f"/analytics/agreement/days?{query}")
    assert (days["n"], days["within"], days["window"]) == (expected["n"], near(expected["within"]), window)
    assert days["data"] == near(oracle.agreement_days(api.rows, judges, window=window, kind=kind))


def test_agreement_with_a_person(api):
    people = {
        row["payload"]["judge"]
        for row in oracle.of(api.rows, "eval.completed")
        if row["payload"]["judge_kind"] == "human"
    }
    for person in people:
        document = api.get(f"/analytics/agreement?judge=a&judge={person}&subject_kind=turn")
        expected = oracle.agreement(api.rows, ["a", person], kind="turn")
        assert {name: document[name] for name in expected} == near(expected)


def test_agreement_within_one_run(api):
    for run in api.runs:
        judged = {row["payload"]["judge"] for row in oracle.of(api.rows, *oracle.ENDS, run=run)}
        if {"a", "c"} <= judged:
            document = api.get(f"/analytics/agreement?judge=a&judge=c&run={run}")
            expected = oracle.agreement(api.rows, ["a", "c"], runs=[run])
            assert {name: document[name] for name in expected} == near(expected)


def test_backlog(api):
    assert api.get("/analytics/backlog") == oracle.backlog(api.rows)
    assert (
        api.get("/analytics/backlog?subject_kind=session")["data"] == oracle.backlog(api.rows, kind="session")["data"]
    )
    for run in api.runs:
        assert api.get(f"/analytics/backlog?run={run}") == oracle.backlog(api.rows, run=run)


def test_judges(api):
    rows = api.get("/judges")["data"]
    assert {
        (first["judge"], first["subject_kind"], first["judge_kind"]): first["count"] for first in rows
    } == oracle.judges(api.rows)
    assert all(first["count"] >= second["count"] for first, second in pairwise(rows))


def test_runs(api):
    expected = near(oracle.runs(api.rows))
    assert api.get("/runs?limit=1000")["data"] == expected
    pages, cursor = [], ""
    while cursor is not None:
        page = api.get(f"/runs?limit=2{cursor and f'&cursor={cursor}'}")
        pages, cursor = pages + page["data"], page["next_cursor"]
    assert pages == expected
    assert api.get("/runs?without=labels")["data"] == [
        expected_run for expected_run in expected if expected_run["name"] != "labels"
    ]
    for expected_run in expected:
        run_document = api.get(f"/runs/{expected_run['run_id']}")
        ends = oracle.of(api.rows, "run.completed", "run.stopped", run=expected_run["run_id"])
        document = {name: value for name, value in ends[-1]["payload"].items() if name != "reason"} if ends else None
        assert (run_document["run"], run_document["document"]) == (
            expected_run,
            near(document and current_document(document)),
        )


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {}),
        ("&order=score", {"order": "score"}),
        ("&judge=a&max_score=0.5", {"judge": ("a",), "high": 0.5}),
        ("&min_score=0.5&max_score=0.95", {"low": 0.5, "high": 0.95}),
        ("&failed=true&order=score", {"failed": True, "order": "score"}),
        ("&failed=false&subject_kind=turn", {"failed": False, "kind": "turn"}),
    ],
)
def test_rows(api, query, options):
    for run in api.runs:
        expected = oracle.run_rows(api.rows, run, **options)
        pages, cursor = [], ""
        while cursor is not None:
            page = api.get(f"/runs/{run}/rows?limit=20{cursor and f'&cursor={cursor}'}{query}")
            pages, cursor = pages + [money(row) for row in page["data"]], page["next_cursor"]
        assert pages == near(expected)
        assert page["total"] == len(expected)
        for row in expected[:1]:
            single = api.get(f"/runs/{run}/rows?seq={row['seq']}")
            assert [money(found_row) for found_row in single["data"]] == near([row])


def test_progress(api):
    for run in api.runs:
        document = api.get(f"/runs/{run}/progress")
        spent = oracle.of(api.rows, "spend.settled", run=run)
        assert document["unsettled"] == oracle.unsettled_cost(api.rows, run, {})
        for unit in ("usd", "msat"):
            amounts = [row["payload"]["amount"] for row in spent if row["payload"]["unit"] == unit]
            assert Decimal(document["cost"][unit]) == sum(map(Decimal, filter(None, amounts)), Decimal(0))
        ends = oracle.of(api.rows, *oracle.ENDS, "record.completed", "record.failed", run=run)
        assert document["judged"] == len({(row["subject_kind"], row["subject_id"]) for row in ends})
        assert sum(document["outcomes"].values()) == document["judged"]
        assert document["expected"] == oracle.of(api.rows, "run.started", run=run)[0]["payload"].get("expected")


def test_subjects(api):
    about = {(row["subject_kind"], row["subject_id"]) for row in oracle.of(api.rows, *oracle.ENDS)}
    for kind, id in sorted(about):
        data = api.get(f"/analytics/turns/{id}?subject_kind={kind}")["data"]
        rows = [row for row in api.rows if (row["subject_kind"], row["subject_id"]) == (kind, id)]
        for name, type in (("evaluations", "eval.completed"), ("failures", "eval.failed")):
            typed_rows = [row for row in rows if row["type"] == type]
            assert [read["chain"] for read in data[name]] == [
                {part: row[part] for part in ("seq", "prev", "digest")} for row in typed_rows
            ]
            for read, row in zip(data[name], typed_rows, strict=True):
                assert read["run_id"] == row["run_id"]
                assert {part: read[part] for part in row["payload"] if part in read} == near(
                    {part: value for part, value in row["payload"].items() if part in read}
                )
                assert {"score", "signals"} <= read.keys() or type == "eval.failed"
        run_rows = [row for row in rows if row["run_id"] == data["run_id"]]
        digests = [row["payload"]["digest"] for row in run_rows if row["type"] == "subject.read"]
        reads = [row["payload"] for row in oracle.of(api.rows, "subject.read")]
        texts = [read["content"] for read in reads if read["digest"] in digests[-1:] and read["content"] is not None]
        assert data["content"] == near(texts[0] if texts else None)


def test_compare(api):
    pairs = [(a, b) for a, b in pairwise(api.runs) if all(_is_completed_nightly(api, run) for run in (a, b))]
    for a, b in pairs:
        document = api.get(f"/compare?a={a}&b={b}&allow_incomparable=true")
        scored, flipped = oracle.flips(api.rows, a, b, "a")
        flips = [
            [difference["subject_id"], difference["score_a"], difference["score_b"]]
            for difference in document["flips"]
            if difference["label"] == "a"
        ]
        assert sorted(difference for difference in flips if difference[0] in scored) == near(sorted(flipped))
        for label, counts in document["passes"].items():
            known_ids, changed = oracle.flips(api.rows, a, b, label)
            gained = [difference for difference in changed if difference[1] < difference[2]]
            assert [counts["known"], counts["b"], counts["a"]] == near(
                [len(known_ids), len(gained), len(changed) - len(gained)]
            )
        for label, difference in document["comparisons"]["stats/paired"]["criteria"].items():
            _paired(api.rows, a, b, label, difference)
        _unpaired(api.rows, a, b, document["comparisons"])
        differs = oracle.differing(api.rows, a, b)
        assert [
            difference for difference in document["differs"] if not difference.startswith("the model that answered")
        ] == differs
        if document["comparable"]:
            assert set(document["differs"]) <= {"source", "data"}
        else:
            assert document["faults"]
        api.get(f"/compare?a={a}&b={b}", status=200 if document["comparable"] else 409)


def _unpaired(rows, a, b, figures):
    """Comparisons that do not go by subjects, of the criteria that both runs have."""
    from scipy import stats

    for label, delta in figures["stats/cliffs_delta"]["criteria"].items():
        before, after = (oracle.scores_of(rows, run, label) for run in (a, b))
        welch = figures["stats/significance"]["criteria"][label]
        assert (delta["n_baseline"], delta["n_variant"]) == (len(before), len(after))
        assert (welch["n_baseline"], welch["n_variant"]) == (len(before), len(after))
        if before and after:
            ahead = sum((first > second) - (first < second) for first in after for second in before)
            assert delta["delta"] == near(ahead / len(before) / len(after))
            mean_difference = sum(after) / len(after) - sum(before) / len(before)
            assert figures["stats/score_delta"]["criteria"][label] == near(mean_difference)
            assert welch["mean_difference"] == near(mean_difference)
        if welch["t"] is not None and min(len(set(before)), len(set(after))) > 1:
            expected = stats.ttest_ind(after, before, equal_var=False)
            assert (welch["t"], welch["p_value"]) == (near(float(expected.statistic)), near(float(expected.pvalue)))


def _is_completed_nightly(api, run):
    name = oracle.of(api.rows, "run.started", run=run)[0]["payload"]["name"]
    return name.startswith("nightly") and oracle.of(api.rows, "run.completed", run=run)


def _paired(rows, a, b, label, figures):
    from scipy import stats

    verdicts = [oracle.of(rows, "eval.completed", run=run, judge=(label,)) for run in (a, b)]
    scores = [{row["subject_id"]: row["payload"]["score"] for row in run} for run in verdicts]
    sessions = {row["subject_id"]: row["session_id"] or row["subject_id"] for run in verdicts for row in run}
    ids = [id for id in scores[0] if id in scores[1]]
    differences = [scores[1][id] - scores[0][id] for id in ids]
    assert figures["n_pairs"] == len(differences)
    if differences:
        assert figures["mean_difference"] == near(sum(differences) / len(differences))
    if figures["t"] is not None:
        mean, sums = sum(differences) / len(differences), dict[str, float]()
        for id, difference in zip(ids, differences, strict=True):
            sums[sessions[id]] = sums.get(sessions[id], 0.0) + difference - mean
        freedom = len(sums) - 1
        error = (len(sums) / freedom * sum(value**2 for value in sums.values())) ** 0.5 / len(differences)
        assert figures["t"] == near(mean / error)
        assert figures["p_value"] == near(2 * float(stats.t.sf(abs(mean / error), freedom)))
        reach = float(stats.t.ppf(0.975, freedom)) * error
        assert (figures["ci_low"], figures["ci_high"]) == (near(mean - reach), near(mean + reach))


def test_every_route_is_asked_here(api):
    requested = {
        "/analytics/quality",
        "/analytics/cost",
        "/analytics/savings",
        "/analytics/turns/{id}",
        "/analytics/backlog",
    }
    requested |= {
        "/analytics/agreement",
        "/analytics/agreement/days",
        "/judges",
        "/runs",
        "/runs/{run_id}",
        "/runs/{run_id}/progress",
        "/runs/{run_id}/rows",
    }
    other_paths = {"/compare", "/labels", "/events", "/ledgers", "/session"}
    other_paths |= {f"/labels/{name}" for name in ("agreement", "case", "queue", "retractions")}
    in_test_tables = {"/runs/{run_id}/subjects", "/runs/{run_id}/neighbors", "/analytics/trend"}
    assert set(api.get("/openapi.json")["paths"]) == requested | other_paths | in_test_tables


def test_cost_has_a_window_and_the_price_list(api):
    document = api.get("/analytics/cost?from=2000-01-01&to=2001-01-01")
    assert document["window"] == {"from": "2000-01-01T00:00:00.000Z", "to": "2001-01-01T00:00:00.000Z"}
    assert (document["data"], document["total_usd"]) == ([], "0")
    assert document["current_pricing_version"] == oracle.pricing_version(api.rows, None)
    all_costs = api.get(f"/analytics/cost?run={api.runs[-1]}")
    assert all_costs["window"] == {"from": None, "to": None}
    ends = api.get("/analytics/cost")["window"]
    first, last = (datetime.fromisoformat(ends[name]) for name in ("from", "to"))
    assert last - first == timedelta(days=7)
