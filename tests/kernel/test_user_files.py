"""One opener of files that a user names: kinds, limits, and pipes that nobody writes to."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from dicast import DataError
from dicast.toolkit import files as user_files
from dicast.toolkit.files import UnreadableFile, check_regular, file_sha256, open_file, read_bytes, read_text
from dicast.toolkit.input_file import InputFile

pytestmark = pytest.mark.skipif(os.name != "posix", reason="FIFOs, sockets and devices are POSIX")


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(user_files, "WRITER_SECONDS", 0.1)


@pytest.fixture
def special(tmp_path, soon):
    """A path for each kind of file that is not read, with the reason."""
    os.mkfifo(tmp_path / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.close()
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    return {
        tmp_path / "fifo": "no program wrote to it",
        tmp_path / "socket": "this is a socket",
        tmp_path / "link": "this is a device",
        tmp_path / "circle": "symbolic links",
        tmp_path: "this is a folder",
        tmp_path / "missing": "No such file",
    }


@pytest.mark.parametrize("read", [read_bytes, read_text, open_file, file_sha256], ids=lambda read: read.__name__)
def test_a_path_that_is_no_file_is_refused_by_its_kind(special, read):
    for path, reason in special.items():
        with pytest.raises(OSError) as caught:
            read(path)
        expected = "this is a pipe" if reason.startswith("no program") and read in (open_file, file_sha256) else reason
        assert expected in str(caught.value)
        assert str(path) in str(caught.value)


def test_lines_are_not_read_from_a_path_that_is_no_file(special):
    for path, reason in special.items():
        with pytest.raises(DataError) as caught, InputFile.opened(path) as file:
            list(file.lines())
        assert reason.lower() in str(caught.value).lower()


def test_a_library_is_not_handed_a_path_that_is_no_file(special, tmp_path):
    for path in special:
        if path.name in ("missing", "circle"):
            check_regular(path)
        else:
            with pytest.raises(OSError):
                check_regular(path)
    (tmp_path / "file").write_text("x")
    check_regular(tmp_path / "file")


def test_a_file_of_many_bytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(2**42)
    started = time.process_time()
    for read in (read_bytes, open_file):
        with pytest.raises(UnreadableFile, match=r"4,398,046,511,104 bytes"):
            read(path)
    assert time.process_time() - started < 1


def test_a_pipe_of_many_bytes_is_read_to_its_limit(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"0" * 5_000)
    os.close(writer)
    with pytest.raises(UnreadableFile, match="more than 1,000 bytes"):
        read_bytes(user_files.Path(f"/dev/fd/{reader}"), 1_000)
    os.close(reader)


def test_a_pipe_of_the_shell_is_read_to_its_end(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"some\r\ntext")
    os.close(writer)
    assert read_text(user_files.Path(f"/dev/fd/{reader}")) == "some\ntext"
    os.close(reader)


def test_a_pipe_of_the_shell_that_does_not_block_is_waited_for(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    writing = threading.Timer(0.2, lambda: (os.write(writer, b"late"), os.close(writer)))
    writing.start()
    assert read_bytes(user_files.Path(f"/dev/fd/{reader}")) == b"late"
    writing.join()
    os.close(reader)


def test_a_pipe_with_a_name_is_read_to_its_end_once_a_program_writes(tmp_path, soon):
    path = tmp_path / "fifo"
    os.mkfifo(path)

    def write():
        with path.open("wb") as file:
            time.sleep(0.3)  # longer than a pipe without a writer is waited for
            file.write(b'{"id": 1}\n')

    for read in (read_bytes, _lines):
        writing = threading.Thread(target=write)
        writing.start()
        assert read(path) == b'{"id": 1}\n'
        writing.join()


def _lines(path):
    with InputFile.opened(path) as file:
        return b"".join(line for _, line in file.lines())


def test_the_null_device_is_an_empty_file():
    assert read_bytes(user_files.Path(os.devnull)) == b""
    assert _lines(user_files.Path(os.devnull)) == b""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="files of the system are Linux")
def test_a_file_of_the_system_is_read_though_it_has_no_size():
    assert b"Name:" in read_bytes(user_files.Path("/proc/self/status"))
    assert b"Name:" in _lines(user_files.Path("/proc/self/status"))


def test_the_rest_of_a_file_with_a_line_without_end_is_not_read(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**39)
    started = time.process_time()
    with pytest.raises(DataError, match="longer than max_line_bytes"):
        list(InputFile(path, "sparse").lines(2**16))
    assert time.process_time() - started < 5


def test_closed_standard_input_is_named(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match="standard input is closed"), InputFile.opened("-") as file:
        list(file.lines())


def test_a_file_of_the_system_is_no_database():
    if not os.path.exists("/proc/self/status"):
        pytest.skip("files of the system are Linux")
    with pytest.raises(UnreadableFile, match="file of the system"):
        check_regular(user_files.Path("/proc/self/status"))


def test_a_label_with_a_key_twice_is_refused_with_its_place(tmp_path):
    from dicast.reading import read_gold

    path = tmp_path / "gold.jsonl"
    path.write_text('{"subject_id": "1", "score": 1}\n{"subject_id": "2", "score": 1, "score": 0}\n')
    with pytest.raises(DataError, match=r"gold\.jsonl:2:33: an object has the key 'score' twice"):
        read_gold(path)
    path.write_text('{"subject_id": "1", "score": 1, "note": ' + "9" * 5_000 + "}\n")
    with pytest.raises(DataError, match="infinity"):
        read_gold(path)
