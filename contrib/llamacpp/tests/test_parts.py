"""Models in parts, their digests, and lines of progress."""

from __future__ import annotations

import asyncio
import re
import time
from hashlib import sha256
from pathlib import Path

import pytest

from dicast import ConfigError
from dicast_llamacpp import Chat
from dicast_llamacpp.file import assembled
from dicast_llamacpp.waiting import Waiting

CONTENT = b"GGUF" + bytes(range(256)) * 3
DIGEST = sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dicast" / "models"


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def part(site, name, content, file="data/part.bin", more_files=()):
    """Install a distribution with a part of a model, next to other files."""
    module = name.replace("-", "_")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    files = {
        f"{module}/__init__.py": b"",
        f"{module}/README.md": b"about",
        f"{module}/{file}": content,
        **dict(more_files),
    }
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(
        "".join(f"{path},,\n" for path in (*files, f"{info.name}/METADATA", f"{info.name}/top_level.txt"))
    )
    for path, data in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)
    return name


@pytest.fixture
def parts(site):
    return [
        part(site, f"some-model-part{number}", CONTENT[start : start + 300], f"data/part0{number}.bin")
        for number, start in enumerate((0, 300, 600), 1)
    ]


def test_parts_are_put_together_once_in_a_cache(parts, cache):
    path = assembled(parts, DIGEST)
    assert path == cache / DIGEST / "some-model.gguf"
    assert path.read_bytes() == CONTENT
    changed = path.stat().st_mtime_ns
    assert assembled(parts, DIGEST).stat().st_mtime_ns == changed
    assert [file.name for file in path.parent.iterdir()] == ["some-model.gguf"]


def test_a_file_of_another_size_in_the_cache_is_put_together_again(parts):
    path = assembled(parts, DIGEST)
    path.write_bytes(b"GGUF")
    assert assembled(parts, DIGEST).read_bytes() == CONTENT


def test_parts_with_another_digest_are_refused_and_leave_nothing(parts, cache):
    with pytest.raises(
        ConfigError,
        match=rf"the parts together have the SHA-256 [0-9a-f]{{64}}, and sha256 is {DIGEST}\. Check the packages and their order",
    ):
        assembled(parts[::-1], DIGEST)
    assert [*(cache / DIGEST).iterdir()] == []


def test_a_cache_that_cannot_be_written_names_the_file(parts, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ConfigError, match=r"some-model\.gguf' cannot be assembled: Not a directory"):
        assembled(parts, DIGEST)


def test_every_missing_part_is_named(parts):
    with pytest.raises(ConfigError) as caught:
        Chat(packages=[*parts, "some-model-part4", "some-model-part5"], sha256=DIGEST)
    assert [problem.path for problem in caught.value.problems] == ["packages[3]", "packages[4]"]
    assert "'some-model-part4' is not installed: pip install" in str(caught.value)


@pytest.mark.parametrize(("more_files", "names"), [({"two_part/data/b.bin": b"x"}, "b.bin, part.bin")])
def test_a_package_with_several_data_files_is_no_part(site, more_files, names):
    part(site, "two-part", CONTENT, more_files=more_files.items())
    with pytest.raises(ConfigError, match=f"must have one data file, a part of a model; it has {names}"):
        Chat(packages=["two-part"], sha256=DIGEST)


def test_a_package_without_data_is_no_part():
    with pytest.raises(ConfigError, match="must have one data file, a part of a model; it has none"):
        Chat(packages=["pluggy"], sha256=DIGEST)


def test_parts_need_a_digest(parts):
    with pytest.raises(ConfigError, match="packages needs sha256"):
        Chat(packages=parts)


@pytest.mark.parametrize("digest", ["abc", DIGEST.upper(), DIGEST + "0"])
def test_a_digest_has_64_small_hex_digits(parts, digest):
    with pytest.raises(ConfigError, match="sha256 has 64 lower-case hex digits"):
        Chat(packages=parts, sha256=digest)


def test_one_of_the_three_names_a_file(parts, tmp_path):
    with pytest.raises(ConfigError, match="package and packages are given"):
        Chat(package="pluggy", packages=parts, sha256=DIGEST)
    with pytest.raises(ConfigError, match="none is given"):
        Chat()


def test_a_file_with_another_digest_is_refused_when_it_is_opened(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(CONTENT)

    async def opened():
        async with Chat(path, sha256="0" * 64).open(None):
            pass

    with pytest.raises(ConfigError, match=rf"m\.gguf' has the SHA-256 {DIGEST}, and sha256 is 0000"):
        asyncio.run(opened())


def test_the_digest_is_what_a_verdict_is_known_by(parts, tmp_path):
    chat = Chat(packages=parts, sha256=DIGEST)
    assert chat.reads(Path()) == {"model": DIGEST}
    assert chat.identity() == {"packages": parts, "sha256": DIGEST, "context": 4096, "temperature": 0.0}
    assert "sha256" not in Chat(_file(tmp_path)).identity()


def _file(folder):
    path = folder / "plain.gguf"
    path.write_bytes(b"GGUF")
    return path


def test_long_work_prints_a_line_each_so_many_seconds_off_a_terminal(capsys):
    start = time.monotonic()
    with Waiting(0.05).of("loading the model m.gguf", lambda: ": 3 of 9"):
        time.sleep(0.4)
    most = (time.monotonic() - start) / 0.05
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert 2 <= len(lines) <= most
    assert all(re.fullmatch(r"llamacpp/chat: loading the model m\.gguf, \d+ s: 3 of 9", line) for line in lines)


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_short_work_prints_nothing(capsys, seconds):
    with Waiting(seconds).of("x"):
        pass
    assert capsys.readouterr().err == ""
