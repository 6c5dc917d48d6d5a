"""Rounds: one head for all who ask in the same one."""

from __future__ import annotations

import asyncio

import pytest

from dicast import Head, LedgerError
from dicast_serve.rounds import Rounds

OLD, NEW = Head(3, "a" * 64), Head(9, "b" * 64)


def started_rounds():
    rounds = Rounds()
    assert rounds.begin(OLD) is None  # a new viewer has just made its own requests
    return rounds, rounds.begin(NEW)


def test_a_round_is_named_after_its_head_and_begins_once():
    rounds, name = started_rounds()
    assert name == f"9-{'b' * 12}" == rounds.begin(NEW)


def test_all_who_ask_in_a_round_get_the_head_that_was_read_first():
    async def ask():
        rounds, name = started_rounds()
        heads = iter([NEW, Head(10, "c" * 64)])

        async def read():
            return next(heads)

        return [await rounds.head(round_name, read) for round_name in (name, name, None)]

    assert asyncio.run(ask()) == [NEW, NEW, Head(10, "c" * 64)]


def test_a_head_that_could_not_be_read_is_read_again_in_the_same_round():
    async def ask():
        rounds, name = started_rounds()
        tries = []

        async def read():
            tries.append(1)
            if len(tries) == 1:
                raise LedgerError("the ledger is locked")
            return NEW

        with pytest.raises(LedgerError, match="locked"):
            await rounds.head(name, read)
        return await rounds.head(name, read)

    assert asyncio.run(ask()) == NEW
