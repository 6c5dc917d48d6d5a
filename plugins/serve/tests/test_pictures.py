"""Pictures of a subject in the dashboard, which loads none from elsewhere."""

from __future__ import annotations

import json
import subprocess

import pytest

from .serving import DICAST, Server
from .test_dashboard import Tab

pytestmark = pytest.mark.slow

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"
PICTURE_MESSAGES = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]},
    {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}],
    },
]
SOURCE = "source: {rows/jsonl: {path: rows.jsonl, fields: {photo: {column: photo, media: image}}}}"


@pytest.fixture
def server(tmp_path):
    """A server over a run with a row that has a picture, an address and an SVG image."""
    photos = [
        f"data:image/png;base64,{PIXEL}",
        "https://example.invalid/a.png",
        "data:image/svg+xml,<svg onload='alert(1)'></svg>",
    ]
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"id": "a", "input": PICTURE_MESSAGES, "output": "x", "photo": photos}) + "\n"
    )
    (tmp_path / "p.yaml").write_text(
        f"{SOURCE}\nmetrics: [proxy/format]\nledger: {{ledger/sqlite: {{path: ledger.db}}}}\n"
    )
    subprocess.run([DICAST, "run", "p.yaml"], cwd=tmp_path, check=True, capture_output=True)
    running = Server(tmp_path)
    yield running
    running.end()


def test_dashboard_draws_pictures_and_shows_markers_for_the_rest(chromium, server):
    with Tab(chromium, server, "#/subject/row/a", wait=".picture img") as page:
        page.wait_for_function("[...document.images].every((one) => one.naturalWidth === 8)")
        assert page.locator(".picture").count() == 3
        assert page.locator(".media .marker").count() == 2
        page.locator(".picture").first.click()
        assert page.locator(".picture.large").count() == 1
        assert PIXEL not in page.evaluate("document.querySelector('.what').textContent")
