"""The parts of a model's file that belong to a fingerprint."""

from __future__ import annotations

from pathlib import Path

from dicast_llamacpp import Chat


def test_another_model_under_the_same_name_is_another_one(tmp_path):
    file, identities = tmp_path / "m.gguf", []
    for weights in (
        b"\0" * (1 << 20),
        b"\0" * (1 << 19) + b"\1" + b"\0" * ((1 << 19) - 1),
        b"\0" * ((1 << 20) + 1),
        b"",
    ):
        file.write_bytes(b"GGUF" + weights)
        identities.append(Chat(path=file).reads(Path()))
    assert len({identity["model"] for identity in identities}) == 4
    assert Chat(path=file, threads=2).reads(Path()) == identities[-1]
