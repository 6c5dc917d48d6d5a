import click
import llm
import sqlite_utils
from llm.cli import logs_db_path
from local import politeness


@llm.hookimpl
def register_commands(cli):
    @cli.command()
    def polite():
        """Print the polite words of each logged response."""
        for row in sqlite_utils.Database(logs_db_path())["responses"].rows:
            click.echo(f"{row['id']} {politeness(row['response'])}")
