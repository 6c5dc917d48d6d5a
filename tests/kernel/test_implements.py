"""Objects that wrap a component and pass on its members by ``__getattr__``."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from dicast import ChatModel, ChatRequest, Cost, Leasing, Message, Reply, Score
from dicast._kernel.contract.implements import implements
from dicast.testing import FakeChatModel, run_pipeline, sample


class Wrapper:
    """Passes on all members of *inner*."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Leases:
    """A ledger's leases."""

    def take_lease(self, run_id, owner, seconds, dead): ...
    def renew_lease(self): ...
    def release_lease(self): ...
    def lease_of(self, run_id): ...


@pytest.mark.parametrize(("protocol", "value"), [(Leasing, Leases()), (ChatModel, FakeChatModel())])
def test_a_wrapper_has_the_members_of_its_inner_object(protocol, value):
    assert implements(value, protocol)
    assert implements(Wrapper(value), protocol)
    assert not implements(Wrapper(object()), protocol)


def opened(model):
    """Return a component whose live object wraps *model*."""

    @attrs.frozen
    class Opened:
        @asynccontextmanager
        async def open(self, run):
            yield Wrapper(model)

    return Opened()


@attrs.frozen
class Asks:
    """A metric that asks a model."""

    tier = "truth"
    model: Any

    async def score(self, subject):
        reply = await self.model.complete(ChatRequest((Message("user", "?"),)))
        return Score(1.0) if isinstance(reply, Reply) else reply


@pytest.mark.parametrize(("cap", "asked"), [("1 usd", 2), ("0.1 usd", 0)])
def test_a_cap_covers_the_calls_of_a_chat_model_in_a_wrapper(cap, asked):
    model = FakeChatModel("yes", cost=Cost("0.25"))
    text = f"metrics: [asks]\nbudget: {{run: {cap}}}"
    run_pipeline(text, subjects=[sample("a", id="a"), sample("b", id="b")], components={"asks": Asks(opened(model))})
    assert len(model.asked) == asked
