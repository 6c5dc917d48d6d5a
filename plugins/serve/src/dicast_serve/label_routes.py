"""Routes of the page on which people label, and the table of all routes."""

from __future__ import annotations

from functools import partial

from .guide import Guide
from .label_case import agreement, case
from .label_queue import QUEUES, queue
from .parameters import MOST, choice, flag, integer, text
from .routes import KIND, ROUTES, Route

PERSON = text("labeller", "The person who labels.")
JUDGE = text("label", "Only the evidence and the objective of this metric or judge.")
BLIND = flag("blind", "Leave the verdicts out until the labeller has labeled the output.", default=True)


AGREEMENT = Route(
    "/labels/agreement",
    "How far people agree who label, with intervals, and the subjects on which they differ.",
    agreement,
    (),
    ("labellers", "pairs", "alpha", "alpha_ci", "adjudicated", "differ", "reasons"),
    light=True,
)


def routes_with(guide: Guide) -> tuple[Route, ...]:
    """Return all routes; the routes of labels use *guide*."""
    return (*ROUTES, _queue_route(guide), _case_route(guide), AGREEMENT)


def _queue_route(guide: Guide) -> Route:
    return Route(
        "/labels/queue",
        "The next subjects of a run to label, the progress of people, and the guidelines.",
        partial(queue, guide=guide),
        (
            text("run", "An id, its first or last characters, a run's name (its newest run), or last.", default="last"),
            choice(
                "queue",
                "random: in the order of seed, as dicast label; unlabeled: nobody has labeled it, in the run's order; odds: one label passes it, another "
                "does not; failed: it failed or has no score, the worst first; label: those with a value of label, the lowest first; differ: people differ.",
                QUEUES,
                "random",
            ),
            integer("seed", "The seed of the random order.", 0, 0, MOST),
            text(
                "label",
                "The metric or judge that the queues failed and label are about; for label by default the gate's.",
            ),
            KIND,
            PERSON,
            integer("limit", "The largest number of items.", 20, 1, 200),
            integer("cursor", "The next_cursor of the previous page: the number of places before it.", 0, 0, MOST),
            integer("cases", "The number of items whose cases, as of /labels/case, are in the answer.", 0, 0, 20),
            BLIND,
        ),
        (
            "run_id",
            "queue",
            "seed",
            "n",
            "own",
            "labeled",
            "decided",
            "left",
            "labellers",
            "data",
            "cases",
            "next_cursor",
        ),
    )


def _case_route(guide: Guide) -> Route:
    return Route(
        "/labels/case",
        "A subject as its judge saw it, without verdicts until the labeller has labeled it.",
        partial(case, guide=guide),
        (
            text("run", "The run whose output is shown.", required=True),
            text("kind", "The kind of the subject.", required=True),
            text("subject", "The id of the subject.", required=True),
            PERSON,
            JUDGE,
            BLIND,
            flag("people", "Add the labels of people, for a decision between them."),
        ),
        ("run_id", "subject_kind", "subject_id", "judged", "is_pair", "own", "given", "evaluations", "failures"),
        light=True,
    )
