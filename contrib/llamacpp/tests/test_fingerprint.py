"""What of a model's file is part of a fingerprint."""

from __future__ import annotations

from pathlib import Path

from dicast_llamacpp import Chat


def test_another_model_under_the_same_name_is_another_one(tmp_path):
    file, found = tmp_path / "m.gguf", []
    for weights in (
        b"\0" * (1 << 20),
        b"\0" * (1 << 19) + b"\1" + b"\0" * ((1 << 19) - 1),
        b"\0" * ((1 << 20) + 1),
        b"",
    ):
        file.write_bytes(b"GGUF" + weights)
        found.append(Chat(path=file).reads(Path()))
    assert len({one["model"] for one in found}) == 4
    assert Chat(path=file, threads=2).reads(Path()) == found[-1]
