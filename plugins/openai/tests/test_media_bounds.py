"""Hostile files and complaints: reading them takes time that grows with their size."""

from __future__ import annotations

import base64
import time
import zlib

import pytest

from dicast import ChatRequest, Media, Message
from dicast.toolkit.endpoint import Answer
from dicast.toolkit.endpoint.media import refused_kinds
from dicast.toolkit.media import sniffed
from dicast.toolkit.media_size import image_size, page_count


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
