from pathlib import Path


def extension_hook(hook_name: str, context: dict) -> None:
    if hook_name == "afterEach":
        with Path("out.txt").open("a") as file:
            file.write(f"{context['test'].get('description')} {context['result']['score']}\n")
