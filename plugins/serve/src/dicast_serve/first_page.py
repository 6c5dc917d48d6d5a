"""What the dashboard's first page asks about all verdicts, where nothing was chosen: what answers are made of can be made ready before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Asked = tuple[str, Sequence[tuple[str, str]]]
"""A path, and the pairs of its query."""


def asked(judges: Sequence[Mapping[str, Any]]) -> Iterator[Asked]:
    """The quality of what was judged most, and how far a person, or else another judge, agrees with the judge that judged most of it.

    *judges* are the data of ``/judges``.
    """
    if not judges:
        return
    kind = judges[0]["subject_kind"]
    yield "/analytics/quality", [("subject_kind", kind)]
    of_kind = [one for one in judges if one["subject_kind"] == kind]
    people = [one["judge"] for one in of_kind if one["judge_kind"] == "human"][:1]
    others = [name for name in dict.fromkeys(one["judge"] for one in of_kind) if name not in people]
    pair = [*others[:1], *people, *others[1:]][:2]
    if len(pair) == 2:
        yield "/analytics/agreement", [("subject_kind", kind), *(("judge", name) for name in pair)]
