"""Hostile files and complaints: reading them takes time that grows with their size."""

from __future__ import annotations

import base64
import time
import zlib

import pytest

from dicast import ChatRequest, Media, Message
from dicast.toolkit.endpoint import Answer
from dicast.toolkit.endpoint.media import refused_kinds
from dicast.toolkit.media import BadMedia, is_allowed, read_media, sniffed
from dicast.toolkit.media_size import image_size, page_count
from dicast.toolkit.media_tokens import most_media_tokens


def pdf(content):
    return Media("file", "application/pdf", "[pdf]", base64.b64encode(content).decode())


HOSTILE = [
    lambda: sniffed(b"<!---->" * 146 + b"<svh"),
    lambda: sniffed(b"<?xml " * 170),
    lambda: page_count(pdf(b"%PDF /ObjStm stream\n" * 200_000)),
    lambda: page_count(pdf(b"%PDF /ObjStm stream\nendstream" * 100_000)),
    lambda: image_size(
        Media("image", "image/jpeg", "[jpeg]", base64.b64encode(b"\xff\xd8" + b"\xff\xe0\0\2" * 50_000).decode())
    ),
    lambda: refused_kinds(
        Answer(400, {}, b'{"error": {"message": "' + b"image" * 200_000 + b'"}}'),
        ChatRequest((Message.of_parts("user", [Media("image", "image/png", "[png]", "AAAA")]),)),
    ),
]


@pytest.mark.parametrize("read", HOSTILE)
def test_hostile_input_is_read_in_linear_time(read):
    began = time.process_time()
    read()
    assert time.process_time() - began < 1


def test_pages_in_compressed_objects_are_counted():
    stream = zlib.compress(b"<< /Type /Page >> << /Type /Page >>")
    content = b"%PDF-1.5 1 0 obj << /Type /ObjStm /N 2 >> stream\r\n" + stream + b"\nendstream /Type /Page"
    assert page_count(pdf(content)) == 3


def test_svg_is_recognized_after_a_prolog():
    assert sniffed(b'<?xml version="1.0"?>\n<!-- a -->\n<!DOCTYPE svg>\n<svg xmlns="x">') == "image/svg+xml"


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4o-mini", "gpt-5-mini", "gpt-5.1", "claude-opus-5", "gemini-2.5-pro", "m"]
)
@pytest.mark.parametrize("sides", [(0, 0), (0, 1), (1, 0)])
def test_an_image_without_pixels_counts_like_one_of_an_unknown_size(model, sides):
    def image(content):
        return Media("image", "image/gif", "[gif]", base64.b64encode(content).decode())

    empty = image(b"GIF89a" + b"".join(side.to_bytes(2, "little") for side in sides))
    assert image_size(empty) is None
    assert most_media_tokens(model, empty) == most_media_tokens(model, image(b"GIF89a")) > 0


@pytest.mark.parametrize(
    "address",
    [
        "http://evil.org\\@example.org/a.png",
        "http://evil.org\\.example.org/a.png",
        "http://evil.org@example.org/a.png",
        "http://exam\nple.org/a.png",
        "http://example.org.evil.org/",
        "http://example.org@evil.org/",
        "http://evil.org#@example.org/",
        "http://[::ffff:169.254.169.254]/",
    ],
)
def test_no_address_of_another_host_is_allowed(address):
    assert not is_allowed(address, ["example.org", "*.example.org"])
    assert is_allowed("https://www.example.org:8443/a.png?user=a@b", ["*.example.org"])


def test_an_escaped_data_url_that_is_too_long_is_not_decoded():
    with pytest.raises(BadMedia, match="at most 20 MB"):
        read_media("data:image/png," + "%41" * 20_000_001, "image", None)
