"""Run the fixture and the reporter over two outputs, and print the file of the reporter."""

from pathlib import Path

import pytest

Path("test_outputs.py").write_text(
    "import pytest\n"
    "@pytest.mark.parametrize('text', [pytest.param('Thank you, please.', id='a'), pytest.param('No.', id='b')])\n"
    "def test_output(text, polite):\n"
    "    polite(text)\n"
)
pytest.main(["-q", "-p", "metric", "-p", "sink", "-p", "no:cacheprovider", "--lines", "out.txt", "test_outputs.py"])
print(Path("out.txt").read_text(), end="")
