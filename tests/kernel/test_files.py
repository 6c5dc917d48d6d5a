from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from dicast import ConfigError
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import error_reason


def test_the_file_is_there_after_the_commit_and_not_before(tmp_path):
    target = tmp_path / "new" / "folder" / "file"
    with AtomicFile(target) as file:
        file.write(b"a" * 100_000)
        file.write(b"b")
        assert not target.exists()
        file.commit()
        file.commit()
    assert target.read_bytes() == b"a" * 100_000 + b"b"
    assert list(target.parent.iterdir()) == [target]


def test_without_a_commit_nothing_is_left_but_what_was_there(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"older")

    def write_half() -> None:
        with AtomicFile(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_dead_process_of_the_run_has_left_is_removed_and_nobody_elses(tmp_path):
    (tmp_path / ".file.r1.tmp").write_bytes(b"left behind, and longer than what comes now")
    rest = {tmp_path / ".file.r2.tmp", tmp_path / ".other.r1.tmp"}
    for path in rest:
        path.touch()
    with AtomicFile(tmp_path / "file", run="r1") as file:
        file.write(b"whole")
        file.commit()
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert set(tmp_path.iterdir()) == {tmp_path / "file", *rest}


def test_a_file_that_is_replaced_keeps_its_mode_and_a_new_one_takes_the_usual(tmp_path):
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    usual.touch()
    old.touch()
    old.chmod(0o640)
    for path in (old, new):
        with AtomicFile(path) as file:
            file.commit()
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_link_keeps_pointing_to_the_file_it_names(tmp_path):
    (tmp_path / "link").symlink_to("real")
    with AtomicFile(tmp_path / "link") as file:
        file.write(b"x")
        file.commit()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_an_existing_file_is_kept_on_request(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write .*file: it exists, and overwrite is false"):
        AtomicFile(tmp_path / "file", overwrite=False)


def test_a_file_that_came_meanwhile_is_kept_too(tmp_path):
    with AtomicFile(tmp_path / "file", overwrite=False) as file:
        (tmp_path / "file").write_bytes(b"mine")
        with pytest.raises(FileExistsError):
            file.commit()
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("path", ["/dev/null", ".", "/proc/kmsg", "/sys/kernel/mm/ksm/run", "/proc/self/new"])
def test_what_is_no_regular_file_is_refused(path):
    with pytest.raises(ConfigError, match="not a regular file"):
        AtomicFile(Path(path))


def test_a_pipe_that_takes_the_place_of_the_file_is_not_waited_for(tmp_path):
    with AtomicFile(tmp_path / "file") as file:
        os.mkfifo(tmp_path / "file")
        with pytest.raises(FileExistsError, match="not a regular file"):
            file.commit()


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write .*below: "):
        AtomicFile(tmp_path / "file" / "below")


def test_a_write_that_breaks_off_appends_nothing_and_may_be_repeated(tmp_path):
    """A full disk, that takes a part of the bytes first: on the second attempt there is room."""

    class FullOnce:
        def __init__(self, file) -> None:
            self.file = file
            self.calls = 0

        def write(self, data) -> int:
            self.calls += 1
            if self.calls == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(bytes(data)[:40_000])

        def __getattr__(self, name):
            return getattr(self.file, name)

    with AtomicFile(tmp_path / "file") as file:
        file._file = FullOnce(file._file)
        file.write(b"1")
        with pytest.raises(OSError, match="No space"):
            file.write(b"2" * 70_000)
        file.write(b"2" * 70_000)
        file.write(b"3")
        file.commit()
    assert (tmp_path / "file").read_bytes() == b"1" + b"2" * 70_000 + b"3"


def test_a_file_that_lacks_a_write_does_not_replace_a_whole_one(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"older and whole")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with AtomicFile(target) as file:
        file.write(b"first")
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
        try:
            with pytest.raises(OSError, match="too large"):
                file.write(b"2" * 70_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.write(b"third")
        for _ in range(2):
            with pytest.raises(OSError, match="too large"):
                file.commit()
    assert target.read_bytes() == b"older and whole"
    assert list(tmp_path.iterdir()) == [target]


def test_a_database_is_never_replaced(tmp_path):
    (tmp_path / "file").write_bytes(b"SQLite format 3\0, and pages")
    with pytest.raises(ConfigError, match="it is a SQLite database, such as a ledger"):
        AtomicFile(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("before", [None, b"", b"<!DOCTYPE html>, older"])
def test_a_file_of_the_same_kind_is_replaced(tmp_path, before):
    if before is not None:
        (tmp_path / "file").write_bytes(before)
    with AtomicFile(tmp_path / "file", replaces=b"<!doctype html>") as file:
        file.write(b"newer")
        file.commit()
    assert (tmp_path / "file").read_bytes() == b"newer"


def test_a_file_of_another_kind_is_not(tmp_path):
    (tmp_path / "file").write_bytes(b"name: mine")
    with pytest.raises(ConfigError, match="it has other content than such a file"):
        AtomicFile(tmp_path / "file", replaces=b"<!doctype html>")
    assert (tmp_path / "file").read_bytes() == b"name: mine"


def test_the_reason_of_a_system_error_has_neither_number_nor_path(tmp_path):
    with pytest.raises(OSError, match="No such file") as caught:
        (tmp_path / "none").read_bytes()
    assert error_reason(caught.value) == "No such file or directory"
    assert error_reason(ValueError("odd")) == "odd"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc")
def test_a_file_of_the_system_in_a_missing_folder_is_refused_with_the_folder():
    with pytest.raises(ConfigError, match="its folder /proc/x does not exist"):
        AtomicFile(Path("/proc/x/j.xml"))
