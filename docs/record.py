"""Script that writes docs/pictures/terminal.svg, the terminal on the home page, from a golden screen of the tests.

uv run python docs/record.py            # after tests/golden/screens/run-80.ansi has changed
uv run python docs/record.py --check    # changes nothing; exit code 1 when the picture is not up to date
"""  # noqa: INP001

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
SCREEN = ROOT / "tests" / "golden" / "screens" / "run-80.ansi"
PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
# Rich's own form with local fonts, because its fonts come from another host.
FORM = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>dicast run, on a terminal</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture() -> str:
    """Return the screen as an SVG image."""
    console = Console(record=True, width=80, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi("$ dicast run after.yaml\n" + SCREEN.read_text(encoding="utf-8")))
    return console.export_svg(title="dicast", theme=MONOKAI, code_format=FORM, unique_id="terminal")


def main(arguments: list[str]) -> int:
    """Write the picture, or compare it with ``--check``, and return the exit code."""
    image = picture()
    if "--check" in arguments:
        return int(not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != image)
    PICTURE.write_text(image, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
