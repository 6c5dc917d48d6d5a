"""The HTTP client of the toolkit, through its public API."""

from __future__ import annotations

import subprocess
import sys


def test_the_options_of_a_client_import_neither_http_libraries_nor_an_event_loop():
    heavy = ("asyncio", "ssl", "httpx", "aiohttp", "stamina")
    code = f"import sys, dicast.toolkit.endpoint; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
