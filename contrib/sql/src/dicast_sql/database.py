"""Temporary DuckDB database with the tables of a ledger. A query reads it, and no other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import duckdb
import orjson

from dicast import ConfigError, Ledger
from dicast.toolkit.printable import one_line

from .tables import TABLES, Table

_LISTING = re.compile(r"\s*(?:show|describe|desc)\b", re.IGNORECASE)
"""Start of a statement about names of tables and columns, which reads no rows."""

_CATALOG = re.compile(
    r"\b(?:show|describe|information_schema|pg_catalog|sqlite_master|duckdb_\w+|pragma_\w+)\b", re.IGNORECASE
)
"""Catalog of the tables in a query."""

_LEAST_BYTES = 1 << 24
"""DuckDB's default for the longest line in bytes."""


@attrs.frozen
class Result:
    """The *columns* of a result, with the name and the SQL type of each, and its *rows*."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[object]]


class Database:
    """The tables that *query* names, in a new database in *folder*.

    :raises ConfigError: if the query is no query, or names something that does not exist.
    """

    def __init__(self, query: str, folder: Path) -> None:
        self._folder, self._names = folder, [name for name in TABLES if re.search(rf"\b{name}\b", query, re.IGNORECASE)]
        self._is_listing = not self._names and _LISTING.match(query) is not None
        if not self._names and not self._is_listing and _CATALOG.search(query) is not None:
            self._names = [*TABLES]
        settings: dict[str, Any] = {"temp_directory": str(folder / "spill"), "autoinstall_known_extensions": "false"}
        self._connection = duckdb.connect(str(folder / "ledger.duckdb"), config=settings)
        try:
            self._query = self._statement(query)
            self._connection.execute("SET allowed_directories = ?", [[str(folder)]])
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")
            self._make_tables()
        except BaseException:
            self.close()
            raise

    def _make_tables(self) -> None:
        """Make the tables of the query, without rows, and check the query with them.

        :raises ConfigError: if the query names something that does not exist.
        """
        for name, table in TABLES.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
            self._connection.execute(f"CREATE TABLE {name} ({columns})")
        with _errors():
            self._connection.execute(f"EXPLAIN {self._query}")
        for name in () if self._is_listing else TABLES.keys() - self._names:
            self._connection.execute(f"DROP TABLE {name}")  # no query reads it by a computed name, as if it had no rows

    def _statement(self, query: str) -> str:
        """Return the only statement of *query*.

        :raises ConfigError: if it is no query, or if there are several statements.
        """
        with _errors():
            statements = self._connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ConfigError(f"dicast sql runs one query, and {query!r:.80} is none; start it with SELECT or FROM")
        return statements[0].query.strip().rstrip(";")

    def close(self) -> None:
        """Release the files."""
        self._connection.close()

    def fill(self, ledger: Ledger) -> None:
        """Copy the rows of *ledger* into the tables of the query."""
        for name in self._names:
            self._copy(name, TABLES[name], ledger)

    def _copy(self, name: str, table: Table, ledger: Ledger) -> None:
        lines, longest = self._folder / f"{name}.jsonl", _LEAST_BYTES
        with lines.open("xb") as file:
            for row in table.rows(ledger):
                line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
                longest = max(longest, len(line))
                file.write(line)
        types = ", ".join(f"{column}: '{kind}'" for column, kind in table.columns.items())
        read = f"read_json(?, columns = {{{types}}}, format = 'newline_delimited', maximum_object_size = ?)"
        with _errors():
            self._connection.execute(f"INSERT INTO {name} SELECT * FROM {read}", [str(lines), longest])  # noqa: S608  # a name of TABLES
        lines.unlink()

    def result(self, most: int | None = None) -> Result:
        """Return the result of the query, with at most *most* rows.

        :raises ConfigError: if the query fails.
        """
        with _errors():
            answer = self._connection.execute(self._query)
            columns = [(str(name), str(kind)) for name, kind, *_ in answer.description or ()]
            return Result(columns, answer.fetchall() if most is None else answer.fetchmany(most))

    def write(self, suffix: str) -> Path:
        """Write the result of the query to a file of the kind *suffix*, one of :data:`SUFFIXES`, and return its temporary path.

        :raises ConfigError: if the query fails.
        """
        path = self._folder / f"result{suffix}"
        with _errors():
            self._connection.execute(f"COPY (\n{self._query}\n) TO '{_quoted(path)}' ({SUFFIXES[suffix]})")
        return path


SUFFIXES = {".csv": "FORMAT csv, HEADER", ".jsonl": "FORMAT json", ".parquet": "FORMAT parquet"}
"""Kinds of files by the ends of their names, with DuckDB's words for them."""


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


@contextmanager
def _errors() -> Iterator[None]:
    """Raise an error of DuckDB as a ConfigError of one line."""
    try:
        yield
    except duckdb.Error as error:
        words = str(error).partition("\n\nLINE ")[0]
        raise ConfigError(one_line(" ".join(words.split()))) from error


@contextmanager
def open_database(query: str) -> Iterator[Database]:
    """Open a database for *query* in a temporary folder that only its owner can read, and remove it at the end."""
    with TemporaryDirectory(prefix="dicast-sql-", ignore_cleanup_errors=True) as folder:
        database = Database(query, Path(folder))
        try:
            yield database
        finally:
            database.close()
