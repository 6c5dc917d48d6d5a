"""Run the scorer and the hook over two outputs, and print the file of the hook."""

from pathlib import Path

import sink  # noqa: F401  # registers its hook
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from metric import polite

texts = {"a": "Thank you, please.", "b": "No."}
outputs = [ModelOutput.from_content("mockllm", text) for text in texts.values()]
for output in outputs:
    output.usage = ModelUsage()  # else the model counts tokens, with a file from the network
model = get_model("mockllm/model", custom_outputs=outputs)
task = Task(dataset=[Sample("Say it.", id=id) for id in texts], scorer=polite())
eval(task, model=model, display="none", log_dir="logs", max_connections=1, max_samples=1)
print(Path("out.txt").read_text(), end="")
