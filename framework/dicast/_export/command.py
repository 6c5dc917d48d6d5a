"""The command ``dicast export``."""

from __future__ import annotations

from pathlib import Path

import click

from .._kernel.api.runs import read_ledger
from .._kernel.cli.options import as_json, chosen_run, ledger_path
from .._kernel.cli.output import print_json
from .._kernel.contract.protocols import Ledger
from .._kernel.contract.registry import exporters, load_offer
from .._kernel.values.errors import ConfigError, Problem
from .._kernel.values.names import nearest
from ..toolkit.atomic_file import AtomicFile
from ..toolkit.exporting import ExportCounts, ExportedRun, Exporter
from ..toolkit.installing import how_to_install

_EXTRAS = {
    "atif": "exports", "eee": "exports", "jsonl": "jsonl", "openai-evals": "exports", "otlp": "telemetry", "parquet": "parquet",
}  # fmt: skip
"""The formats of dicast's own plugins, each with the extra that has it."""


@click.command()
@click.argument("run", default="last", metavar="[RUN]")
@click.option("--to", "format_", required=True, metavar="FORMAT", help=f"The format: {', '.join(_EXTRAS)}.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--no-content", is_flag=True, help="Leave out judged content, reasons and rationales.")
@ledger_path
@as_json
def export_run(
    run: str, format_: str, out: Path, overwrite: bool, no_content: bool, ledger: Path | str | None, as_json: bool
) -> None:
    """Write a run as a file that other tools read.

    RUN is an id, its first or last characters, the name of a pipeline (its newest run over all subjects counts), or 'last'. The file appears when it is
    complete. An existing file is kept unless --overwrite is set. Content that the format cannot express is counted.
    """
    if out.exists() and not overwrite:
        raise ConfigError(Problem("the file exists; --overwrite replaces it", str(out)))
    exporter = _exporter(format_)
    run_id, counts = read_ledger(ledger, lambda live: _write(live, run, exporter, out, overwrite, not no_content))
    if as_json:
        print_json({"path": str(out), "run_id": run_id, "format": format_, "written": counts.written,
                    "unit": counts.unit, "left_out": dict(counts.left_out)})  # fmt: skip
        return
    click.echo(f"{out}: {counts.written:,} {counts.unit} of run {run_id}")
    for reason, count in counts.left_out.items():
        click.echo(f"not expressed: {count:,} {reason}")


def _exporter(name: str) -> Exporter:
    """Return the exporter of the format *name*.

    :raises ConfigError: if no installed plugin has it.
    """
    offer = exporters().get(name)
    if offer is not None:
        exporter: Exporter = load_offer("dicast.exporters", offer)
        return exporter
    if name in _EXTRAS:
        raise ConfigError(f"--to {name}: the format is not installed; {how_to_install(_EXTRAS[name])}")
    names = sorted({*exporters(), *_EXTRAS})
    message = f"--to {name}: no such format; the formats are {', '.join(names)}"
    raise ConfigError(Problem(message, value=name, hint=nearest(name, names)))


def _write(
    ledger: Ledger, name: str, exporter: Exporter, out: Path, overwrite: bool, has_content: bool
) -> tuple[str, ExportCounts]:
    """Write the file, and return the id of the run and the counts.

    :raises ConfigError: if the ledger has no such run, or the file cannot be written.
    """
    run = ExportedRun(ledger.read, chosen_run(ledger, name), has_content)
    try:
        with AtomicFile(out, overwrite=overwrite) as file:
            counts = exporter(run, file)
            file.commit()
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror or error}") from error
    return run.run_id, counts
