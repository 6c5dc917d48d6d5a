"""Metrics and judges from plain functions."""

from __future__ import annotations

import asyncio
import inspect
import pickle

import attrs
import pytest

from dicast import ConfigError, Cost, InvalidCost, Judgment, Score, Subject, judge, maybe_await, metric

ROW = Subject("row", "1", output="some words here")


@metric(tier="proxy")
def brevity(subject: Subject, *, words: int = 120, tags: list[str] = ["a"]) -> Score:  # noqa: B006
    """1.0 up to *words* words."""
    tags.append("used")
    return Score(min(1.0, words / len(subject.text.split())), details=" ".join(tags))


@metric(tier="truth", cost="0.01 usd", name="slow_one")
async def slow(subject: Subject, *, seconds: float) -> Score:
    await asyncio.sleep(seconds)
    return Score(0.5)


@judge(accepts=["turn", "row"], cost="5 msat")
def with_children(subject: Subject, children, *, weightless: bool = True) -> Judgment:
    return Judgment(len(children) / 10)


@judge()
def alone(subject: Subject) -> Judgment:
    return Judgment(0.25)


def test_a_function_s_keyword_arguments_are_the_options_with_their_types_and_defaults():
    assert [(field.name, field.default is attrs.NOTHING) for field in attrs.fields(brevity)] == [
        ("words", False),
        ("tags", False),
    ]
    assert attrs.fields(slow).seconds.default is attrs.NOTHING
    assert inspect.get_annotations(brevity, eval_str=True)["words"] is int
    assert brevity().words == 120
    assert brevity(words=1).score(ROW).value == pytest.approx(1 / 3)
    with pytest.raises(TypeError):
        slow()


def test_a_made_component_is_frozen_comparable_and_picklable():
    assert brevity(words=3) == brevity(words=3) != brevity(words=4)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        brevity().words = 1
    assert pickle.loads(pickle.dumps(brevity(words=3))) == brevity(words=3)
    assert pickle.loads(pickle.dumps(alone())) == alone()


def test_a_list_by_default_is_not_shared():
    assert brevity().score(ROW).details == "a used"
    assert brevity().tags == ["a"]


def test_the_name_and_the_text_are_the_function_s_unless_said():
    assert (brevity.name, brevity.__doc__, brevity.tier) == ("brevity", "1.0 up to *words* words.", "proxy")
    assert (slow.name, slow.__name__, slow.tier) == ("slow_one", "slow", "truth")
    assert brevity.__module__ == __name__


def test_the_cost_is_the_estimate():
    assert slow(seconds=0).estimate(ROW) == Cost("0.01")
    assert with_children().estimate(ROW) == Cost(5, "msat")


@pytest.mark.parametrize("cost", [None, "0 usd"])
def test_what_costs_nothing_has_no_estimate_so_that_the_runner_need_not_ask(cost):
    @metric(tier="proxy", cost=cost)
    def free(subject):
        return Score(1.0)

    @judge(cost=cost)
    def free_too(subject):
        return Judgment(1.0)

    assert not hasattr(free, "estimate")
    assert not hasattr(free_too, "estimate")


def test_an_async_function_is_awaited():
    assert inspect.iscoroutinefunction(slow.score)
    assert asyncio.run(slow(seconds=0).score(ROW)) == Score(0.5)
    assert not inspect.iscoroutinefunction(brevity.score)


def test_a_judge_takes_children_or_leaves_them():
    assert with_children().judge(ROW, [1, 2]).score == 0.2
    assert alone().judge(ROW, [1, 2]).score == 0.25
    assert (with_children.accepts, alone.accepts) == (("turn", "row"), ())


def test_a_tier_of_another_name_is_refused():
    with pytest.raises(ConfigError, match="'proxy' or 'truth', not 'gold'"):
        metric(tier="gold")


@pytest.mark.parametrize("cost", ["0.01", "a lot usd", "-1 usd", "1 eur"])
def test_a_cost_that_is_no_money_is_refused(cost):
    with pytest.raises(InvalidCost):
        metric(tier="truth", cost=cost)
    with pytest.raises(InvalidCost):
        judge(cost=cost)


def nothing(): ...
def only_options(*, words: int = 1): ...
def two(subject, words): ...
def many(*subjects): ...
def any_option(subject, **options): ...
def three(subject, children, words): ...


@pytest.mark.parametrize(
    ("make", "function", "words"),
    [
        (metric(tier="proxy"), nothing, "takes no subject"),
        (metric(tier="proxy"), only_options, "takes no subject"),
        (metric(tier="proxy"), two, "unexpected parameter 'words'.*after a"),
        (metric(tier="proxy"), many, "unexpected parameter 'subjects'"),
        (metric(tier="proxy"), any_option, "unexpected parameter 'options'"),
        (judge(), three, "unexpected parameter 'words'; it takes subject and children"),
        (judge(), nothing, "takes no subject"),
    ],
)
def test_a_function_of_another_shape_is_refused_where_it_is_defined(make, function, words):
    with pytest.raises(ConfigError, match=rf"{function.__name__}.*{words}"):
        make(function)


def test_a_nested_component_may_be_either_kind_of_function():
    async def later():
        return Score(1.0)

    async def both():
        return await maybe_await(later()), await maybe_await(Score(0.5))

    assert asyncio.run(both()) == (Score(1.0), Score(0.5))
