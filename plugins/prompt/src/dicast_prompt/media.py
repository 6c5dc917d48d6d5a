"""Images, sounds and files printed by templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Literal, Protocol

import attrs
import orjson

from dicast import ChatRequest, Message, Reply
from dicast.toolkit.gallery import Gallery, MediaMode
from dicast.toolkit.media import Urls

from .bounds import Unrenderable
from .criterion import Criterion
from .template import Template

_SIMPLE = frozenset((str, int, float, bool))


class MediaOptions(Protocol):
    """Options of ``prompt/chat`` that decide which media are sent."""

    @property
    def media(self) -> MediaMode: ...  # noqa: D102
    @property
    def urls(self) -> Urls: ...  # noqa: D102

    def prompts(self) -> Mapping[str, Criterion]: ...  # noqa: D102


@attrs.frozen
class MediaRequest:
    """A request, and the number of media by kind that are markers in it."""

    request: ChatRequest
    marked: Mapping[str, int]

    def hidden(self, reply: Reply) -> Mapping[str, int]:
        """Return the number of media by kind that the model did not read."""
        sent = Counter(str(media.kind) for message in self.request.messages for media in message.media)
        return dict(sorted((Counter(self.marked) + (sent - Counter(reply.media))).items()))


@attrs.frozen
class Printing:
    """Renderer of templates for a row: *names* has the row's values, with the places of *gallery* for its media.

    *marked* counts by kind the media whose markers were printed.
    """

    names: Mapping[str, object]
    gallery: Gallery
    marked: Counter[str] = attrs.field(factory=Counter)

    @classmethod
    def of(cls, names: Mapping[str, object], options: MediaOptions) -> Printing:
        """Return the printing of a row that has *names*."""
        gallery = Gallery(options.media, options.urls, partial(_texts, names, options), holds_markers=True)
        placed = {name: value if type(value) in _SIMPLE else gallery.placed(value) for name, value in names.items()}
        return cls(placed if gallery.counts else names, gallery)

    def message(self, role: Literal["system", "user"], template: Template) -> Message:
        """Return the message that *template* renders.

        :raises Unrenderable: if it cannot be rendered, or prints media that cannot be sent.
        """
        text = template.render(self.names)
        if not self.gallery.counts:
            return Message(role, text)
        markers = [marker for place, marker in self.gallery.markers.items() if place in text]
        if faults := [fault for _, fault in markers if fault is not None]:
            raise Unrenderable(f"{template.place}: {'; '.join(faults)} (media: mark shows markers)", "missing_input")
        if markers and self.gallery.mode == "show":
            shown = ", ".join(part.marker for part, _ in markers)
            why = "its content is not recorded, and its address is not one of urls"
            raise Unrenderable(f"{template.place}: media: show cannot show {shown}: {why}", "missing_input")
        self.marked.update(str(part.kind) for part, _ in markers)
        return Message.of_parts(role, self.gallery.split(text))


def _texts(names: Mapping[str, object], options: MediaOptions) -> bytes:
    """Return all texts that a template may print of a row, and the templates."""
    prompts = [[texts.system, texts.user] for texts in options.prompts().values()]
    return orjson.dumps([names, prompts])
