"""Fails when it is asked what it offers."""

from dicast import hookimpl


@hookimpl
def dicast_metrics():
    raise RuntimeError("no licence")
