"""An abandoned coroutine leaves nothing in progress."""

from __future__ import annotations

import contextvars
from contextvars import ContextVar

import pytest

from dicast._kernel.timing.turns import holding

HELD: ContextVar[int] = ContextVar("held", default=0)


class Wait:
    def __await__(self):
        yield


async def held(value):
    with holding(HELD, value):
        await Wait()


def test_a_coroutine_that_was_given_up_is_thrown_away_in_another_context_without_a_word():
    given_up = held(2)
    contextvars.copy_context().run(given_up.send, None)
    given_up.close()
    assert HELD.get() == 0


def test_the_value_ends_with_the_block_and_with_an_error_in_it():
    with holding(HELD, 1):
        assert HELD.get() == 1
    with pytest.raises(KeyError), holding(HELD, 2):
        raise KeyError
    assert HELD.get() == 0
