"""Run the metric and the sink over two outputs, and print the file of the sink."""

from pathlib import Path

from dicast.testing import run_pipeline, sample
from metric import polite
from sink import Lines

path = Path("out.txt")
run_pipeline(
    "metrics: [polite]\nsinks: [lines]",
    subjects=[sample("Thank you, please.", id="a"), sample("No.", id="b")],
    components={"polite": polite(), "lines": Lines(path)},
)
print(path.read_text(), end="")
