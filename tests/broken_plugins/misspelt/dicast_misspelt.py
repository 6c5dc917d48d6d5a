"""Calls its hook by the wrong name."""

from dicast import hookimpl


@hookimpl
def dicast_metrcs():
    return []
