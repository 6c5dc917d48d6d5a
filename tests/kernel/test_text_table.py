"""Tables for readers as data, and as plain lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dicast.toolkit.printable import column_count, one_line, short_name
from dicast.toolkit.terminal import folded, wrap_columns
from dicast.toolkit.text_table import TextTable


def test_numbers_stand_on_the_right_and_what_is_missing_is_a_dash():
    table = TextTable(("id", "n", "score"), (("a", 1234, 0.5), ("long", None, None)))
    assert list(table.lines()) == ["id        n   score", "a     1,234  0.5000", "long      -       -"]


def test_the_widest_texts_are_cut_first_and_stay_in_one_line():
    table = TextTable(("id", "input", "output"), (("1", "two\nlines " * 9, "short"),), least=10)
    assert max(map(len, table.lines(30))) <= 30
    assert "short" in list(table.lines(30))[1]


def test_columns_without_room_come_below_with_the_first_one_again():
    table = TextTable(("id", *(f"metric_number_{n}" for n in range(4))), (("a", 1, 2, 3, 4),))
    lines = list(table.lines(50))
    assert lines[0].split() == ["id", "metric_number_0", "metric_number_1"]
    assert lines[2:4] == ["", "id  metric_number_2  metric_number_3"]
    assert lines[4].split() == ["a", "3", "4"]


CELLS = st.one_of(
    st.none(),
    st.integers(-(10**6), 10**6),
    st.floats(0, 1),
    st.text(st.characters(min_codepoint=33), min_size=1, max_size=60),
)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4), st.integers(40, 120))
def test_no_line_is_longer_than_it_may_be_and_no_row_is_lost(rows, width):
    lines = list(TextTable(("first", "second", "third"), rows).lines(width))
    assert max(map(column_count, lines)) <= width
    assert len([line for line in lines if line]) % (len(rows) + 1) == 0


def test_a_name_is_cut_in_the_middle_and_a_sentence_at_its_end():
    names = "session-0000aa/1", "session-0000aa/2"
    table = TextTable(("id", "reason"), [(name, "one word after another") for name in names], least=9)
    assert list(table.lines(20))[1:] == ["sess…aa/1  one word…", "sess…aa/2  one word…"]


@given(st.text(min_size=1), st.integers(1, 20))
def test_a_short_name_has_at_most_the_characters_asked_for(name, longest):
    short = short_name(name, longest)
    assert column_count(short) <= longest
    assert short == one_line(name) or "…" in short


def test_a_wide_character_takes_two_columns():
    assert column_count("日本 ab") == 7
    table = TextTable(("id", "n"), (("日本", 1), ("abcde", 2)))
    assert list(table.lines()) == ["id     n", "日本   1", "abcde  2"]


WORDS = st.lists(st.text("ab日本語の", min_size=1, max_size=12), min_size=1, max_size=30)


@given(WORDS, st.integers(12, 40))
def test_rows_of_wide_characters_fit_and_lose_no_character(words, width):
    words = [word if column_count(word) > len(word) else word[:8] for word in words]
    rows = wrap_columns(" ".join(words), width, "  ")
    assert "".join("".join(rows).split()) == "".join(words)
    assert max(map(column_count, rows)) <= max(width, 14)


def test_a_line_without_wide_characters_is_wrapped_at_its_blanks():
    line = "a " * 60 + "https://example.org/é"
    assert folded(line).splitlines()[1].endswith("https://example.org/é")
