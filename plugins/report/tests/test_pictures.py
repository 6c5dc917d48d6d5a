"""Pictures in the page: thumbnails that a click enlarges, and markers for everything that is not in the page itself."""

from __future__ import annotations

import base64
import json
import struct
import zlib

import pytest

from dicast import Judgment, Subject
from dicast.testing import FakeJudge, run_pipeline
from dicast_report.media import Pictures, without_media

RED = (255, 0, 0)
SVG = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(2)</script></svg>"
HOSTILE = '"><img src=x onerror=alert(3)>.png'
PIPELINE = """name: pictures
source: {rows/jsonl: {path: rows.jsonl, fields: {photo: {column: photo, media: image}, output: {column: drawn, media: image}}}}
metrics: [proxy/format]
sinks: [{report/html: {path: report.html}}]
ledger: {ledger/sqlite: {path: ledger.db}}
"""


def png(color=RED, side=16):
    rows = b"".join(b"\0" + bytes(color) * side for _ in range(side))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, dicast, write_rows):
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "red.png").write_bytes(png())
    rows = [
        {"id": "both", "photo": ["red.png", SVG, "https://example.invalid/a.png"], "drawn": "red.png"},
        {"id": "same", "photo": None, "drawn": f"data:image/png;base64,{base64.b64encode(png()).decode()}"},
    ]
    write_rows(folder / "rows.jsonl", rows)
    (folder / "pipeline.yaml").write_text(PIPELINE)
    dicast(folder, "run", "pipeline.yaml", code=0)
    return folder


@pytest.mark.slow
def test_pictures_are_drawn_enlarged_and_nothing_is_loaded(open_page, pictures):
    with open_page(pictures / "report.html", hash="#row=row%2Fboth") as page:
        page.wait_for_selector("dialog[open] .picture img")
        assert page.locator(".picture").count() == 2
        assert page.evaluate("[...document.images].every((one) => one.complete && one.naturalWidth === 16)")
        markers = page.locator(".media .marker").all_text_contents()
        assert [text.removeprefix("photo") for text in markers] == [
            f"[image/svg+xml, {len(SVG) - len('data:image/svg+xml,')} B]",
            "[image/png, https://example.invalid/a.png]",
        ]
        button = page.locator(".picture").first
        small = button.bounding_box()["height"]
        button.click()
        assert button.get_attribute("aria-expanded") == "true"
        assert button.bounding_box()["height"] > small
        assert page.evaluate("document.querySelectorAll('a[href^=http], svg script').length") == 0


def test_page_without_pictures_has_the_policy_that_allows_none(pictures, dicast):
    text = (pictures / "report.html").read_text()
    assert "img-src data:; base-uri" in text
    dicast(pictures, "report", "pictures", "--ledger", "ledger.db", "--no-content", "--out", "bare.html")
    bare = (pictures / "bare.html").read_text()
    assert "img-src" not in bare.partition("</head>")[0]
    assert base64.b64encode(png()).decode() not in bare


def test_a_picture_is_in_the_page_once_and_not_beyond_its_limit():
    items = []
    value = {"type": "image", "media_type": "image/png", "data": base64.b64encode(png()).decode(), "bytes": 75}
    assert without_media([value, {"a": value}, value], items, HOSTILE) == [
        "[image/png, 75 B]",
        {"a": "[image/png, 75 B]"},
    ] + ["[image/png, 75 B]"]
    pictures = Pictures()
    keys = {item["picture"] for item in pictures.keep(items)}
    assert (len(keys), len(pictures.sources)) == (1, 1)
    assert [*Pictures(left=10).keep(items)[0]] == ["marker", "name"]


@pytest.mark.parametrize(
    "value",
    [
        {"type": "image", "media_type": "image/svg+xml", "data": "PHN2Zz4="},
        {"type": "image", "media_type": "image/png", "data": '"><script>'},
        {"type": "image", "media_type": "text/html", "data": "PHN2Zz4="},
        {"type": "image", "media_type": "image/png", "url": "https://example.invalid/a.png"},
        {"type": "image", "media_type": "image/png", "url": "data:text/html;base64,PHN2Zz4="},
        {"type": "audio", "media_type": "audio/wav", "data": "UklGRg=="},
    ],
)
def test_only_raster_images_in_base64_are_drawn(value):
    items = []
    assert json.dumps(without_media(value, items))
    assert items[0]["src"] is None


@pytest.mark.slow
def test_a_picture_that_a_judge_did_not_see_is_labelled(open_page, tmp_path):
    value = {"type": "image", "media_type": "image/png", "data": base64.b64encode(png()).decode(), "bytes": 75}
    row = Subject("row", "a", "Which color?", "Red.", context={"photo": value})
    blind = FakeJudge([Judgment(0.9, signals={"evidence": {"hidden": {"image": 1}}})])
    page_file = tmp_path / "report.html"
    sinks = f"judges: [blind]\nsinks: [{{report/html: {{path: {page_file}}}}}]\n"
    run_pipeline(sinks, subjects=[row], components={"blind": blind})
    with open_page(page_file, hash="#row=row%2Fa") as page:
        page.wait_for_selector("dialog[open] .picture img")
        assert page.locator(".media .unseen").all_text_contents() == ["not shown to blind"]
        assert "blind saw markers in place of 1 image." in page.locator("dialog[open]").inner_text()
