"""Images, sounds and files: their requests, refusals and token counts."""

from __future__ import annotations

import base64
import struct
import zlib

import attrs
import pytest

from dicast import AccessRefused, ChatRequest, Failure, Media, Message
from dicast.toolkit.media_tokens import most_media_tokens


def png(width, height):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


def media(kind="image", media_type="image/png", content=b"", **fields):
    data = base64.b64encode(content or png(64, 64)).decode()
    return Media(kind, media_type, f"[{media_type}]", data, **fields)


def question_with(*parts, **options):
    return ChatRequest((Message.of_parts("user", ["Look: ", *parts]),), max_output_tokens=64, **options)


WAV = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0" + struct.pack("<II", 8000, 16000) + bytes(16_000 * 10)


def test_sends_a_part_for_each_of_the_media(chat_server, ask):
    chat_server.answer = "ok"
    image = Media("image", "image/*", "[image]", url="https://example.org/a.png")
    reply = ask(
        question_with(media(), image, media("audio", "audio/mpeg"), media("file", "application/pdf", name="a.pdf"))
    )
    text, *parts = chat_server.requests[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "Look: "}
    assert [part["type"] for part in parts] == ["image_url", "image_url", "input_audio", "file"]
    assert parts[0]["image_url"]["url"] == f"data:image/png;base64,{media().data}"
    assert parts[1] == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert parts[2]["input_audio"]["format"] == "mp3"
    assert parts[3]["file"] == {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{media().data}"}
    assert reply.media == {"image": 2, "audio": 1, "file": 1}


def test_types_that_the_format_does_not_have_are_markers(chat_server, ask):
    chat_server.answer = "ok"
    reply = ask(
        question_with(media("image", "image/svg+xml"), media("audio", "audio/ogg"), media("file", "text/csv"), media())
    )
    content = chat_server.requests[0].body["messages"][0]["content"]
    assert content[0]["text"] == "Look: [image/svg+xml][audio/ogg][text/csv]"
    assert reply.media == {"image": 1}


REFUSED = [
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "Unsupported content part type for text-only server: image_url"),
    (400, "This model does not support image input."),
    (400, "Model 'm' does not support images"),
    (400, "m is not a multimodal model"),
    (400, "At most 0 image(s) may be provided in one request."),
    (400, "messages[0].content: expected string, received array"),
    (400, "Vision is not supported for this model"),
    (404, "No endpoints found that support image input"),
    (422, "Input should be a valid string, messages -> 0 -> content"),
    (422, "unknown variant `image_url`, expected `text` at line 1 column 90"),
    (500, "image input is not supported - hint: you may need to provide the mmproj"),
    (501, "images are not supported"),
]


@pytest.mark.parametrize(("status", "message"), REFUSED)
def test_a_model_that_reads_no_images_gets_markers_from_then_on(chat_server, ask, status, message):
    chat_server.script(chat_server.error(status, message))
    chat_server.answer = "ok"
    first, second = ask(question_with(media()), question_with(media()), retries=0)
    assert [first.text, first.media, second.media] == ["ok", {}, {}]
    bodies = [request.body["messages"][0]["content"] for request in chat_server.requests]
    assert bodies[1:] == ["Look: [image/png]"] * 2


def test_only_the_kind_that_is_refused_becomes_a_marker(chat_server, ask):
    chat_server.script(chat_server.error(400, "This model does not support audio input."))
    chat_server.answer = "ok"
    reply = ask(question_with(media(), media("audio", "audio/wav")), retries=0)
    assert reply.media == {"image": 1}


ONE_ITEM = [
    (400, "You uploaded an unsupported image. Please make sure your image has of one the following formats."),
    (400, "Could not process image"),
    (400, "Invalid base64 image_url."),
    (400, "image exceeds 5 MB maximum: 9000000 bytes > 5242880 bytes"),
    (400, "Error while downloading https://example.org/a.png."),
    (400, "messages.0.content.1.image.source.base64.media_type: Input should be 'image/jpeg' or 'image/png'"),
    (400, "At most 1 image(s) may be provided in one request."),
    (400, "temperature is not supported"),
    (500, "internal error while loading the image processor"),
]


@pytest.mark.parametrize(("status", "message"), ONE_ITEM)
def test_a_complaint_about_one_image_fails_its_call_alone(chat_server, ask, status, message):
    chat_server.answer = lambda request: (
        chat_server.error(status, message) if "content" in str(request.body) and request.number == 1 else "ok"
    )
    first, second = ask(question_with(media()), question_with(media()), retries=0, temperature=None)
    assert isinstance(first, Failure)
    assert message.split(" ")[0] in first.message
    assert second.media == {"image": 1}


def test_a_request_that_needs_its_media_fails_without_another_call(chat_server, ask):
    chat_server.answer = chat_server.error(400, "This model does not support image input.")
    first, second = ask(question_with(media(), needs_media=True), question_with(media(), needs_media=True), retries=0)
    assert {first.kind, second.kind} == {"missing_input"}
    assert chat_server.count == 1


def test_other_404_still_ends_the_run(chat_server, ask):
    chat_server.answer = chat_server.error(404, "The model `m` does not exist")
    with pytest.raises(AccessRefused):
        ask(question_with(media()))


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("openai/gpt-4o-mini", (64, 64), 8500),
        ("gpt-4.1-mini", (1024, 1024), 1762),
        ("gpt-5-nano", (9000, 9000), 6150),
        ("claude-sonnet-4-5", (1000, 1000), 1414),
        ("gemini-2.5-flash", (200, 200), 1120),
        ("some-model", (64, 64), 16_384),
    ],
)
def test_images_count_by_the_rule_of_the_family(model, size, tokens):
    assert most_media_tokens(model, media(content=png(*size))) == tokens


def test_an_image_of_unknown_size_counts_the_most_of_its_family():
    image = Media("image", "image/*", "[image]", url="https://example.org/a.png")
    assert most_media_tokens("gpt-4o", image) == 85 + 8 * 170
    assert most_media_tokens("claude-opus-4-1", image) == 4784


def test_sounds_count_by_their_seconds_and_pdf_files_by_their_pages():
    sound = media("audio", "audio/wav", WAV)
    assert most_media_tokens("gpt-4o-audio-preview", sound) == pytest.approx(500, abs=2)
    pages = b"%PDF-1.4 /Type /Pages /Type /Page >> /Type/Page>>"
    assert most_media_tokens("gpt-4o", media("file", "application/pdf", pages)) == 2 * (4000 + 85 + 8 * 170)
    assert most_media_tokens("gpt-4o", media("file", "application/pdf", b"%PDF-1.4")) > 16_384


def test_the_estimate_covers_media(model):
    from decimal import Decimal

    from dicast import Price

    chat = model(price=Price(Decimal(1), Decimal(0)), model="gpt-4o")
    text = attrs.evolve(question_with(media()), messages=(Message("user", "Look: [image/png]"),))
    assert chat.estimate(question_with(media())).amount - chat.estimate(text).amount == Decimal("0.000255")
