"""Requests of the dashboard's first page before the user chooses anything. They are known, so the server can prepare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PageRequest = tuple[str, Sequence[tuple[str, str]]]
"""A path, and the pairs of its query."""


def first_requests(judges: Sequence[Mapping[str, Any]]) -> Iterator[PageRequest]:
    """Yield the requests for quality and agreement of the first page.

    Quality is of the kind of subject with the most verdicts. Agreement is of the judge with the most verdicts on it and all people, else another
    judge. *judges* is the data of ``/judges``.
    """
    if not judges:
        return
    kind = judges[0]["subject_kind"]
    yield "/analytics/quality", [("subject_kind", kind)]
    of_kind = [judge for judge in judges if judge["subject_kind"] == kind]
    people = [judge["judge"] for judge in of_kind if judge["judge_kind"] == "human"]
    other_judges = [name for name in dict.fromkeys(judge["judge"] for judge in of_kind) if name not in people]
    if any(judge["judge"] in other_judges[:1] and judge["labeled"] for judge in of_kind):
        yield "/analytics/agreement", [("subject_kind", kind), ("gold", "people"), ("judge", other_judges[0])]
        return
    pair = [*other_judges[:1], *people, *other_judges[1:]][:2]
    if len(pair) == 2:
        yield "/analytics/agreement", [("subject_kind", kind), *(("judge", name) for name in pair)]
