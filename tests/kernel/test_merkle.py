"""The trees of RFC 6962, with the vectors that the log of Certificate Transparency publishes."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast.toolkit.merkle import audit_path, root_of_path, tree_root

ENTRIES = [
    bytes.fromhex(text)
    for text in (
        *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


@pytest.mark.parametrize(("count", "root"), [*enumerate(ROOTS)])
def test_roots_are_those_of_the_published_vectors(count, root):
    assert tree_root(ENTRIES[:count]).hex() == root


def test_audit_paths_are_those_of_the_example_in_the_rfc():
    """Section 2.1.3: with the leaves a to f, j and seven entries, the path of d0 is [b, h, l], of d3 [c, g, l], of d4 [f, j, k], of d6 [i, k]."""

    def leaf(entry):
        return sha256(b"\x00" + entry).digest()

    def node(left, right):
        return sha256(b"\x01" + left + right).digest()

    entries = [b"d%d" % number for number in range(7)]
    a, b, c, d, e, f, j = map(leaf, entries)
    g, h, i = node(a, b), node(c, d), node(e, f)
    k, l_ = node(g, h), node(i, j)
    assert tree_root(entries) == node(k, l_)
    assert [audit_path(entries, index) for index in (0, 3, 4, 6)] == [[b, h, l_], [c, g, l_], [f, j, k], [i, k]]


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=40), st.data())
def test_a_path_leads_to_the_root_and_a_changed_path_does_not(entries, data):
    index = data.draw(st.integers(0, len(entries) - 1))
    path, root = audit_path(entries, index), tree_root(entries)
    assert root_of_path(entries[index], index, len(entries), path) == root
    assert root_of_path(entries[index] + b"x", index, len(entries), path) != root
    for place, digest in enumerate(path):
        changed = [*path[:place], bytes([digest[0] ^ 1]) + digest[1:], *path[place + 1 :]]
        assert root_of_path(entries[index], index, len(entries), changed) != root
    for wrong in (path[:-1], [*path, root]):
        if wrong != path:
            with pytest.raises(ValueError, match="does not fit"):
                root_of_path(entries[index], index, len(entries), wrong)


@pytest.mark.parametrize(("index", "count"), [(-1, 3), (3, 3), (0, 0)])
def test_an_entry_that_is_not_there_has_no_path(index, count):
    with pytest.raises(IndexError):
        audit_path(ENTRIES[:count], index)
    with pytest.raises(ValueError, match="there is no entry"):
        root_of_path(b"", index, count, [])
