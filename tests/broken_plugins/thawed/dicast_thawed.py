"""Offers a metric that could change while it is used."""

import attrs

from dicast import Score, hookimpl


@attrs.define
class Thawed:
    """Always 1."""

    tier = "proxy"

    def score(self, subject):
        return Score(1.0)


@hookimpl
def dicast_metrics():
    return [Thawed]
