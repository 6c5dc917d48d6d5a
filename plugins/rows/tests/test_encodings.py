"""Files that are not UTF-8: one problem for the whole file, and the option ``encoding``."""

from __future__ import annotations

import gzip

import pytest

from dicast import ConfigError, DataError
from dicast_rows import Csv, Json, Jsonl, Yaml

CAFE = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
TEXTS = {
    Csv: "output\n" + f"{CAFE}\n" * 150,
    Jsonl: f'{{"output": "{CAFE}"}}\n' * 150,
    Json: "[" + ",\n".join([f'{{"output": "{CAFE}"}}'] * 150) + "]",
    Yaml: f"- output: {CAFE}\n" * 150,
}


@pytest.fixture
def written(tmp_path):
    def write(text, encoding, pack=False):
        data = text.encode(encoding)
        (tmp_path / "rows").write_bytes(gzip.compress(data) if pack else data)
        return tmp_path / "rows"

    return write


@pytest.mark.parametrize("source", TEXTS)
def test_a_wrong_encoding_is_one_problem_with_its_count(source, written):
    with pytest.raises(DataError) as caught:
        source(written(TEXTS[source], "cp1252")).check()
    (problem,) = caught.value.problems
    assert "byte 0xe9 is not UTF-8; save the file as UTF-8" in problem.message
    assert problem.line == (2 if source is Csv else 1)
    if source is not Yaml:  # behind bytes that are not text there is no YAML
        assert f"(150 {'item' if source is Json else 'line'}s have such bytes, this is the first)" in problem.message


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("source", TEXTS)
def test_a_file_is_read_in_the_encoding_that_is_named(source, written, pack):
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        read = source(written(TEXTS[source], encoding, pack), encoding=encoding)
        read.check()
        assert next(iter(read.subjects())).output == CAFE


@pytest.mark.parametrize("source", TEXTS)
def test_a_wrong_or_unknown_named_encoding_is_an_error(source, written):
    with pytest.raises(DataError) as caught:
        source(written(TEXTS[source], "cp1252"), encoding="ascii").check()
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].line == (2 if source is Csv else 1)
    with pytest.raises(ConfigError, match="did you mean 'cp1252'"):
        source(written("", "ascii"), encoding="cp125")
