"""Call the command over two logged responses."""

import os
from pathlib import Path

os.environ["LLM_USER_PATH"] = str(Path.cwd())

import click
import metric
import sqlite_utils
from click.testing import CliRunner

rows = [{"id": "a", "response": "Thank you, please."}, {"id": "b", "response": "No."}]
sqlite_utils.Database("logs.db")["responses"].insert_all(rows, pk="id")
group = click.Group()
metric.register_commands(group)
print(CliRunner().invoke(group, ["polite"]).output, end="")
