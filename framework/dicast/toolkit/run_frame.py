"""A run as a pandas data frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from .._kernel.values import Event
from .._kernel.values.errors import ConfigError
from .run_table import RunTable

if TYPE_CHECKING:
    from pandas import DataFrame

_BATCH = 1000


def data_frame(events: Iterable[Event]) -> DataFrame:
    """Return the rows of a run from its *events*, with the columns of ``csv/rows``.

    :raises ConfigError: if pandas is not installed.
    """
    if find_spec("pandas") is None:
        raise ConfigError("to_pandas needs pandas: pip install pandas")
    from pandas import DataFrame

    rest, table = iter(events), RunTable(Path(gettempdir()), content=True)
    try:
        while batch := list(islice(rest, _BATCH)):
            table.take(batch)
        table.end()
        return DataFrame(list(table.rows()), columns=table.columns()) if table.started else DataFrame()
    finally:
        table.close()


def joined(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of all *frames*, with the name of each in the column ``experiment``."""
    from pandas import concat

    return concat([frame.assign(experiment=name) for name, frame in frames.items()], ignore_index=True)
