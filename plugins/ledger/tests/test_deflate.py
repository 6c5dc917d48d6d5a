"""Blocks with and without zlib-ng: each library reads the blocks of the other."""

from __future__ import annotations

import subprocess
import sys
import zlib

import pytest

from dicast.toolkit.ledger_lines.blocks import body_of, lines_in

LINES = [b'["a", %d, "text"]' % number for number in range(300)]
SCRIPT = """
import sys
sys.modules["zlib_ng"] = None
from dicast.toolkit.ledger_lines.blocks import body_of, lines_in
lines = [b'["a", %d, "text"]' % number for number in range(300)]
size, body = body_of(lines, packed=True)
assert lines_in(size, body) == lines
try:
    lines_in(size, body[:-9])
except ValueError:
    sys.stdout.buffer.write(body)
"""


def test_zlib_reads_a_block_of_this_environment():
    size, body = body_of(LINES, packed=True)
    assert len(body) < size
    assert len(zlib.decompress(body)) == size


@pytest.mark.slow
def test_a_block_of_an_environment_without_zlib_ng_is_read():
    body = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True).stdout
    size, _ = body_of(LINES, packed=True)
    assert lines_in(size, body) == LINES
