from pathlib import Path

from inspect_ai.hooks import Hooks, SampleEnd, hooks


@hooks(name="lines", description="Write a line for each score.")
class Lines(Hooks):
    async def on_sample_end(self, data: SampleEnd) -> None:
        with Path("out.txt").open("a") as file:
            for score in (data.sample.scores or {}).values():
                file.write(f"{data.sample.id} {score.value}\n")
