"""Run the evaluator over two outputs, and print the file of the function for reports."""

from pathlib import Path

from metric import Polite
from pydantic_evals import Case, Dataset
from sink import write_lines

texts = {"a": "Thank you, please.", "b": "No."}
cases = [Case(name=id, inputs=text) for id, text in texts.items()]
report = Dataset(name="outputs", cases=cases, evaluators=[Polite()]).evaluate_sync(lambda text: text, progress=False)
write_lines(report, Path("out.txt"))
print(Path("out.txt").read_text(), end="")
