"""A server for the tests, and live ledgers."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from dicast import Secret
from dicast_postgres import Ledger

_SPEC = importlib.util.spec_from_file_location("dicast_postgres_test_server", Path(__file__).with_name("server.py"))
server_module = sys.modules[_SPEC.name] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(server_module)


def new_server(**settings):
    """Return a started server; skip the test where PostgreSQL is not installed."""
    programs = server_module.find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = server_module.Server(programs, **settings)
    try:
        server.start()
    except BaseException:
        server.remove()
        raise
    return server


@pytest.fixture(scope="session")
def server():
    """A server that the tests share, each with schemas of its own."""
    server = new_server()
    yield server
    server.remove()


@pytest.fixture
def own_server():
    """A server of one test, which may kill it."""
    server = new_server()
    yield server
    server.remove()


class Called:
    """A live ledger whose ``async def`` methods are called like functions."""

    def __init__(self, live, runner):
        self._live, self._runner = live, runner

    def __getattr__(self, name):
        value = getattr(self._live, name)
        if not inspect.iscoroutinefunction(value):
            return value
        return lambda *arguments: self._runner.run(value(*arguments))


@contextmanager
def opened(component, *, create=True):
    with asyncio.Runner() as runner:
        context = component.open(create=create)
        live = runner.run(context.__aenter__())
        try:
            yield Called(live, runner)
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def open_ledger():
    """Open a component with ``with open_ledger(component) as ledger``."""
    return opened


@pytest.fixture
def component(server):
    """A ledger in a schema of its own."""
    return Ledger(Secret(server.url), schema=server.schema())


@pytest.fixture
def connect(server, component):
    """Return a connection of psql's kind to the tables of the component."""
    with psycopg.connect(server.url, autocommit=True, options=f"-csearch_path={component.schema}") as connection:
        yield connection
