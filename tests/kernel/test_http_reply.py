"""Replies over HTTP: their largest size, the extracted data, and the longest wait that a server may ask for."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import tracemalloc
import zlib
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dicast.toolkit.http_reply import ReplyReader, ReplyRefused, retry_after

KEY = "sk-not/to+be shown"
MOST = 100_000


def read(reader, pieces, coding="", **options):
    async def chunks():
        for piece in pieces:
            yield piece

    return asyncio.run(reader.read(chunks(), {"Content-Encoding": coding}, **options))


def endless():
    while True:
        yield bytes(65_536)


def bomb():
    """10 GB of zeros, made as they are asked for."""
    packer = zlib.compressobj(wbits=31)
    for _ in range(10_000):
        yield packer.compress(bytes(1_000_000))


@pytest.mark.parametrize(("pieces", "coding"), [(endless, ""), (bomb, "gzip")])
def test_a_reply_without_end_takes_little_memory(pieces, coding):
    tracemalloc.start()
    try:
        with pytest.raises(ReplyRefused, match=r"more than 100,000 bytes \(max_reply_bytes\)"):
            read(ReplyReader([], MOST), pieces(), coding)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_complaint_may_be_cut():
    assert read(ReplyReader([KEY], 10), [b"x" * 8, b"y" * 8], cut=True) == b"x" * 8 + b"yy"


@given(st.binary(max_size=2000), st.integers(1, 500), st.sampled_from(["gzip", "deflate", "identity"]))
def test_what_is_compressed_is_read_all_the_same(data, size, coding):
    packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    packed = data if coding == "identity" else packer.compress(data) + packer.flush()
    assert read(ReplyReader([]), (packed[at : at + size] for at in range(0, len(packed), size)), coding) == data


@pytest.mark.parametrize(("coding", "message"), [("br", "compressed as 'br'"), ("gzip", "and is not")])
def test_what_cannot_be_decoded_is_refused(coding, message):
    with pytest.raises(ReplyRefused, match=message):
        read(ReplyReader([]), [b"plain"], coding)


@pytest.mark.parametrize(
    "spelt",
    [
        KEY,
        KEY.replace(" ", "  "),
        KEY.upper(),
        "sk-not/\n  to+be\tshown",
        r"sk-not\\\/to+be\nshown",
        "".join(f"\\u{ord(one):04X}" for one in KEY),
        "".join(f"\\\\u{ord(one):04x}" for one in KEY),
        "".join(f"%{ord(one):02x}" for one in KEY),
        "".join(f"&#{ord(one)};" for one in KEY),
        "".join(f"&#x{ord(one):x};" for one in KEY),
        quote(KEY),
        quote(KEY, safe=""),
        KEY.encode().hex(),
        *(base64.b64encode(b"me: "[:before] + KEY.encode() + b"!").decode() for before in range(4)),
        *(base64.urlsafe_b64encode(b"me: "[:before] + KEY.encode()).decode() for before in range(4)),
    ],
)
def test_a_secret_is_taken_out_however_it_is_spelt(spelt):
    reader = ReplyReader([f"Bearer {KEY}", KEY])
    for text in (read(reader, [f"key {spelt}.".encode()]).decode(), reader.message(f"key {spelt}.")):
        assert "***" in text
        assert not any(spelt[at : at + 6] in text for at in range(len(spelt) - 6))


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8, max_size=20).filter(
        lambda text: len(text.strip()) > 7
    )
)
@example('"0000000')
def test_no_value_of_a_json_reply_holds_a_secret(secret):
    for escape in (lambda text: json.dumps(text)[1:-1], lambda text: "".join(f"\\u{ord(char):04x}" for char in text)):
        if max(secret) > "\uffff":
            continue
        reply = f'{{"model": "a{escape(secret)}b", "choices": [{{"finish_reason": "{escape(secret)}"}}]}}'
        assert secret.strip() not in str(json.loads(read(ReplyReader([secret]), [reply.encode()]))["model"])


@pytest.mark.parametrize("piece", ["\\", "\\n", "n\\n", "s k", "s\\n", "\\u0073", KEY[:-1], "n" + " " * 1000, "&#0000"])
def test_a_hostile_reply_takes_little_time(piece):
    reply = (piece * (200_000 // len(piece)) + KEY).encode()
    began = time.process_time()
    assert KEY not in read(ReplyReader([KEY]), [reply]).decode()
    assert time.process_time() - began < 2


def test_a_stand_in_for_a_key_garbles_no_reply():
    reader = ReplyReader(["test", "no"])
    assert read(reader, [b"the test has no end"]) == b"the test has no end"
    assert reader.message("the test has no end") == "the *** has no end"


@given(st.text(max_size=60))
def test_retry_after_never_raises(text):
    assert (retry_after({"Retry-After": text, "Date": text}) or 0.0) >= 0.0


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 01 Jan 2024 00:00:00 +9999999999",
        "Mon, 01 Jan 2024 00:00:00 +9999",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "9" * 400,
        "1e300",
        "nan",
        "soon",
    ],
)
def test_a_moment_of_no_use_is_none(text):
    assert retry_after({"Retry-After": text}) in (None, 0.0)


def test_what_a_server_asks_for_is_kept():
    date = {"Retry-After": "Mon, 01 Jan 2024 00:01:00 GMT", "Date": "Mon, 01 Jan 2024 00:00:00 GMT"}
    assert [retry_after(item) for item in ({"Retry-After": "7"}, {"Retry-After-Ms": "1500"}, date)] == [7.0, 1.5, 60.0]
