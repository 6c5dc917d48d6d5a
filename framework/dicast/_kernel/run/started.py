"""Identity of a requested run: its origin, by which it is resumed, and the members of ``run.started`` that the request adds."""

from __future__ import annotations

import re
from typing import Any

from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline
from ..resume.named_runs import run_kind
from ..resume.open_runs import Origin, RunCommand
from .plan import file_identity
from .request import Request

_PASSWORD = re.compile(r"//[^/@\s]*@")
"""The user of an address, with a password as a rule."""


def origin_of(pipeline: Pipeline, request: Request) -> Origin:
    """Return the origin of the runs that *request* can resume."""
    command, shard = request.command or RunCommand(pipeline.file), request.shard
    part = None if shard is None else (shard.number, shard.of)
    return Origin(file_identity(pipeline), pipeline.name, command, request.flags, part)


def with_request(
    started: dict[str, Any], request: Request, mask: SecretMask, expected: int | None, *, keeps_content: bool
) -> dict[str, Any]:
    """Return *started*, the payload for a run of a pipeline, with the members of *request*.

    :param expected: the number of subjects, if the source counted them.
    :param keeps_content: the ledger stores texts, such as the values of settings.
    :raises ConfigError: when a shard cannot be merged later.
    """
    started |= {"prompts": mask.data(started["prompts"])} if "prompts" in started else {}
    started |= {"suite": request.suite, "preview": request.preview}
    started |= {"filter": [rule.text for rule in request.filters]} if request.filters else {}
    started |= {} if expected is None else {"expected": expected}
    if request.shard is not None:
        from .shard_run import shard_record  # few runs are shards

        started["setup"] |= request.shard_setup
        started["shard"] = shard_record(request.shard, request.command, mask)
    elif (command := recorded_command(request, mask, keeps_content=keeps_content)) is not None:
        started |= command.record()
    started["kind"] = request.kind or run_kind(started)
    return started


def recorded_command(request: Request, mask: SecretMask, *, keeps_content: bool) -> RunCommand | None:
    """Return the command of *request* without the values of settings that the ledger does not record; None for a run without a command."""
    if request.command is None:
        return None
    return request.command.without(lambda setting: _is_hidden(setting, mask, keeps_content))


def _is_hidden(setting: str, mask: SecretMask, keeps_content: bool) -> bool:
    """Return whether the value of *setting* is not recorded: a text in a ledger without texts, a secret, or an address with a password."""
    return not keeps_content or mask.text(setting) != setting or _PASSWORD.search(setting) is not None
