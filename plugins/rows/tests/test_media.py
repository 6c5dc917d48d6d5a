"""Columns of images, sounds and files."""

from __future__ import annotations

import base64
import struct
import subprocess
import sys
import zlib

import orjson
import pytest

from dicast import ConfigError, DataError
from dicast_rows import Csv, Jsonl, Parquet
from dicast_rows.fields import Column


def png():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


IMAGE = {
    "type": "image",
    "media_type": "image/png",
    "data": base64.b64encode(png()).decode(),
    "bytes": len(png()),
}
PHOTO = {"image": Column("photo", media="image")}


def jsonl(folder, *rows, **options):
    (folder / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return Jsonl(folder / "rows.jsonl", **options)


def only_subject(source):
    source.check()
    (subject,) = source.subjects()
    return subject


def test_media_are_in_the_context_under_the_name_of_their_field(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    subject = only_subject(jsonl(tmp_path, {"output": "x", "photo": "a.png", "n": 1}, fields=PHOTO))
    assert subject.context == {"n": 1, "image": {**IMAGE, "name": "a.png"}}
    assert subject.columns == {"photo": "a.png"}


def test_parts_of_a_subject_may_be_media(tmp_path):
    url = f"data:image/png;base64,{IMAGE['data']}"
    fields = {"output": Column("drawn", media="image"), "reference": Column("reference", media="image")}
    subject = only_subject(jsonl(tmp_path, {"drawn": url, "reference": None}, fields=fields))
    assert (subject.output, subject.reference) == (IMAGE, None)
    assert subject.columns == {"drawn": f"[image/png, {len(png())} B]"}


def test_lists_and_empty_cells(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    rows = [{"output": "x", "photo": ["a.png", "a.png"]}, {"output": "x", "photo": ""}, {"output": "x", "photo": None}]
    first, *rest = jsonl(tmp_path, *rows, fields=PHOTO).subjects()
    assert [image["name"] for image in first.context["image"]] == ["a.png", "a.png"]
    assert [other.context for other in rest] == [{}, {}]


def test_cells_of_a_table_may_be_lists_in_json(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "rows.csv").write_text('output,photo\nx,"[""a.png""]"\n')
    (subject,) = Csv(tmp_path / "rows.csv", fields={"image": Column("photo", json=True, media="image")}).subjects()
    assert [image["name"] for image in subject.context["image"]] == ["a.png"]
    (tmp_path / "rows.csv").write_text("output,other\nx,y\n")
    with pytest.raises(DataError, match="photo"):
        Csv(tmp_path / "rows.csv", fields=PHOTO).check()


def test_images_of_parquet_files_are_bytes_with_a_path(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"output": "x", "photo": {"bytes": png(), "path": "deep/a.png"}, "plain": png()}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    fields = {**PHOTO, "other": Column("plain", media="image")}
    subject = only_subject(Parquet(tmp_path / "rows.parquet", fields=fields))
    assert subject.context == {"image": {**IMAGE, "name": "a.png"}, "other": IMAGE}
    assert orjson.loads(orjson.dumps(subject.columns)) == dict.fromkeys(
        ("photo", "plain"), f"[image/png, {len(png())} B]"
    ) | {"photo": f"[image/png, a.png, {len(png())} B]"}
    with pytest.raises(DataError, match="holds bytes"):
        Parquet(tmp_path / "rows.parquet", fields=PHOTO).check()


def test_folder_says_where_the_files_are(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(png())
    (tmp_path / "data").mkdir()
    fields = {"image": Column("photo", media="image", folder="../photos")}
    assert only_subject(jsonl(tmp_path / "data", {"output": "x", "photo": "a.png"}, fields=fields)).context["image"]
    with pytest.raises(DataError, match="outside of the folder"):
        jsonl(tmp_path / "data", {"output": "x", "photo": "../photos/a.png"}, fields=PHOTO).check()
    absolute = str(tmp_path / "photos" / "a.png")
    with pytest.raises(DataError, match="outside of the folder"):
        jsonl(tmp_path / "data", {"output": "x", "photo": absolute}, fields=PHOTO).check()


def test_a_link_does_not_lead_out_of_the_folder(tmp_path):
    (tmp_path / "secret.png").write_bytes(png())
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").symlink_to(tmp_path / "secret.png")
    source = jsonl(tmp_path / "data", {"output": "x", "photo": "a.png"}, fields=PHOTO)
    with pytest.raises(DataError, match="outside of the folder"):
        source.check()


def test_a_changed_file_changes_the_digest_of_the_data(tmp_path):
    source = jsonl(tmp_path, {"output": "x", "photo": "a.png"}, fields=PHOTO)
    digests = set()
    for extra in b"", b"1":
        (tmp_path / "a.png").write_bytes(png() + extra)
        digests.add(source.check())
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": Column("photo", media="image")}, "the field 'id' is no media"),
        ({"context": Column("photo", media="image")}, "the field 'context' is no media"),
        ({"photo": "photo"}, "unknown field 'photo'"),
        ({"input": Column("photo", folder="x")}, "folder is for columns with media"),
    ],
)
def test_fields_that_cannot_be_media_are_refused(tmp_path, fields, message):
    with pytest.raises(ConfigError, match=message):
        jsonl(tmp_path, {"output": "x"}, fields=fields)


def test_sources_import_readers_of_media_and_of_reasoning_on_first_use():
    late = ("dicast.toolkit.media", "dicast.toolkit.message_formats", "dicast.toolkit.parts")
    code = f"import sys, dicast_rows; print([name for name in {late} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
