"""The task ``prompt/chat``: its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING

import attrs

from dicast import ONLY, ChatModel, ConfigError, Failure, RunContext, Subject, Task, Within
from dicast.toolkit.gallery import MediaMode
from dicast.toolkit.media import Urls

from .criterion import Criterion, template

if TYPE_CHECKING:
    from collections.abc import Awaitable

_MOST_RETRIES = 10
_COLD: float | None = 0.0


def _check_criteria(
    task: Chat, attribute: attrs.Attribute[Mapping[str, Criterion]], criteria: Mapping[str, object]
) -> None:
    for name in criteria:
        if not name.strip() or "." in name:
            raise ConfigError(f"a criterion's name is not blank and has no dots, which part paths: {name!r}")


@attrs.frozen
class Chat:
    """Ask a chat model about each row: one question, or one for each criterion.

    The prompts are Jinja2 templates, inline or as ``{file: PATH}``. Their names are the row's columns: ``id``, ``input``, ``output``,
    ``reference`` and ``session_id`` if the row has them, the other columns by their names, and ``context`` with all of these.
    A name that the row does not have fails the row; write ``{{ hint | default('none') }}`` for an optional name. Printed
    values other than texts and numbers are written as JSON. Templates are sandboxed: no attributes that start with ``_``, no other
    templates or files, no powers, at most 1,000,000 rounds of loops and calls and 10,000,000 characters.

    The reply becomes the judged output; with criteria, the first criterion's reply does. A reply cut by the token limit (``metrics.stop_reason``
    is ``max_tokens``) is an output, and so is a refusal written by the model; the run's warnings count both. A refusal without text, or a text cut
    by a content filter, fails the row as ``refused``. Another empty reply is asked for again, and then fails the row. The chat model retries its
    own errors, and ``retry`` includes its attempts. ``responses.CRITERION.metrics`` has ``prompt_tokens``,
    ``completion_tokens``, ``total_tokens``, ``cost`` (usd; ``cost_msat`` in msat) if they are known, and ``latency_seconds``,
    each for all attempts together, then ``model``, ``stop_reason``, ``finish_reason`` (the endpoint's word for it), and further figures of the model.

    :param model: the chat model.
    :param system: the system message's template; no such message by default.
    :param user: the user message's template.
    :param criteria: templates by criterion, ``{NAME: {system, user}}``; a missing template is the task's own. They are asked one after
        the other, in their order.
    :param temperature: 0 by default; ``null`` leaves it to the model's own options.
    :param max_output_tokens: the longest reply in tokens.
    :param retries: how often the model is asked again after an empty reply, 0 to 10.
    :param media: ``auto`` sends an image, a sound or a file that a template prints to a model that reads it, and a marker such as
        ``[image/png, 48 kB]`` to any other model, which ``metrics.hidden_media`` counts; ``show`` fails the row instead; ``mark`` always sends
        markers.
    :param urls: the addresses of media that the model's endpoint may fetch: none (``mark``), any (``allow``), or a list of hosts.
    :param security_level: a text in every record, such as ``official``.
    :param determinism_level: a text in every record, such as ``high``.
    """

    name = "chat"

    model: ChatModel
    system: str | None = template()
    user: str | None = template()
    criteria: Mapping[str, Criterion] = attrs.field(factory=dict, validator=_check_criteria)
    temperature: float | None = attrs.field(default=_COLD, validator=Within(0, inf, "0 or more"))
    max_output_tokens: int = attrs.field(default=1024, validator=Within(1, inf, "1 or more"))
    retries: int = attrs.field(default=1, validator=Within(0, _MOST_RETRIES, f"a number from 0 to {_MOST_RETRIES}"))
    media: MediaMode = attrs.field(default="auto", metadata={"later": True})
    urls: Urls = attrs.field(default="mark", metadata={"later": True})
    security_level: str | None = attrs.field(default=None, metadata={"counts": False})
    determinism_level: str | None = attrs.field(default=None, metadata={"counts": False})

    def __attrs_post_init__(self) -> None:
        lacking = [name for name, texts in self.prompts().items() if texts.user is None]
        if lacking and not self.criteria:
            raise ConfigError("prompt/chat needs the option 'user', the template of what is asked")
        if lacking:
            raise ConfigError(
                f"no template 'user' for {', '.join(lacking)}: give each criterion one, or the task for all"
            )

    def prompts(self) -> Mapping[str, Criterion]:
        """Return the texts of the templates by criterion, with the task's own for missing ones."""
        if not self.criteria:
            return {ONLY: Criterion(self.system, self.user)}
        return {
            name: Criterion(texts.system or self.system, texts.user or self.user)
            for name, texts in self.criteria.items()
        }

    def prompt_texts(self) -> Mapping[str, Mapping[str, str]]:
        """Return the templates by criterion and role."""
        return {
            name: {role: text for role, text in (("system", texts.system), ("user", texts.user)) if text is not None}
            for name, texts in self.prompts().items()
        }

    def needed_columns(self) -> Mapping[str, str]:
        """Return the names that the templates always read, each with the option of the first template that does."""
        # Importing Jinja2 is slow, and only tasks need it.
        from .template import needed_names

        needed: dict[str, str] = {}
        for name, texts in self.prompts().items():
            own = self.criteria.get(name)
            for role, text in (("system", texts.system), ("user", texts.user)):
                is_own = own is not None and getattr(own, role) is not None
                option = f"criteria.{name}.{role}" if is_own else role
                needed = dict.fromkeys(needed_names(text), option) | needed if text is not None else needed
        return needed

    @staticmethod
    def fill_prompts(
        texts: Mapping[str, Mapping[str, str]], row: Mapping[str, object]
    ) -> Mapping[str, Mapping[str, str]] | Failure:
        """Return the templates *texts* as rendered for a *row*, with markers for media; a Failure if one cannot be rendered."""
        # Importing Jinja2 is slow, and only tasks need it.
        from .filling import filled

        return filled(texts, row)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Task]:
        """Compile the templates, once per run."""
        # Importing Jinja2 is slow, and only tasks need it.
        from .asking import Asker

        yield Asker.of(self)

    def produce(self, subject: Subject) -> Subject | Failure | Awaitable[Subject | Failure]:
        """Ask about *subject*, outside of any run."""
        from .asking import Asker  # as above

        return Asker.of(self).produce(subject)
