"""Names by numbers: the distinction of names, with marks and without."""

from __future__ import annotations

from functools import partial

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from dicast.reading import HASH_BYTES, Names, Numbering, name_hash
from dicast.reading.names import SharedNames

lists = st.lists(st.lists(st.sampled_from(["a", "b", "", 'ä\n"', None]), max_size=4, unique=True), max_size=6)


def kept(chunks, mark=name_hash):
    """Names as a ledger keeps them."""
    names = Names()
    for chunk in chunks:
        if chunk:
            names.add_block(len(chunk), orjson.dumps(chunk).decode(), b"".join(map(mark, chunk)))
    return names


def colliding(name):
    """Return a mark whose first half equals that of every other name."""
    return bytes(8) + name_hash(name)[8:]


@given(one=lists, other=lists, mark=st.sampled_from([name_hash, colliding]), plain=st.booleans())
def test_equal_names_have_equal_numbers_across_columns(one, other, mark, plain):
    texts = [[name for chunk in chunks for name in chunk] for chunks in (one, other)]
    names = [Names(texts[0]) if plain else kept(one, mark), kept(other, mark)]
    numbering = Numbering(np, *names)
    numbers = [number for item in names for number in numbering.of(item).tolist()]
    whole = [*texts[0], *texts[1]]
    assert len(set(zip(whole, numbers, strict=True))) == len(set(whole)) == len(set(numbers))
    assert max(numbers, default=-1) < numbering.size or not numbers
    result = numbering.find(["a", None, "missing"]) if mark is name_hash or plain else {}
    assert result == {name: numbers[whole.index(name)] for name in result}
    assert mark is colliding or set(result) == {"a", None} & set(whole)
    order, ids = numbering.sorted_texts(np.array(numbers, "i"))
    assert [ids[place] for place in np.argsort(order).tolist()] == whole


@given(chunks=lists)
def test_texts_are_had_in_part_as_in_whole(chunks):
    names = [name for chunk in chunks for name in chunk]
    every_other = list(range(0, len(names), 2))
    assert kept(chunks).texts_at(every_other) == [names[number] for number in every_other]
    assert kept(chunks).texts == names
    assert len(kept(chunks)) == len(names)
    assert list(kept(chunks).first) == [names.index(name) for name in names]


def test_names_that_are_added_leave_the_ledgers_alone():
    names = kept([["a", "b"], ["a"]])
    extra = names.copy()
    assert [extra.number(name) for name in ("b", "c", "c")] == [1, 3, 3]
    assert (len(names), len(extra)) == (3, 4)
    assert extra.hashes is None
    assert len(names.hashes) == 3 * HASH_BYTES


def added(names, first, texts):
    """Return the number of the first of the names *texts*, which a block has."""
    return names.start_of_block(first, len(texts), partial(orjson.dumps, texts), b"".join(map(name_hash, texts)))


def test_a_block_has_the_numbers_that_it_had_before_until_it_has_other_names():
    names = Names()
    assert [added(names, 1, ["a", "b"]), added(names, 9, ["c"]), added(names, 1, ["a", "b"])] == [0, 2, 0]
    assert [added(names, 9, ["d"]), added(names, 9, ["d"])] == [3, 3]
    assert names.texts == ["a", "b", "c", "d"]


def test_columns_in_use_share_the_names_of_a_ledger_and_runs_have_their_own():
    shared = SharedNames()
    names = shared.get(None)
    assert shared.get(None) is names
    assert shared.get("run") is not names
    added(names, 1, ["a"])
    del names
    assert len(shared.get(None)) == 0
