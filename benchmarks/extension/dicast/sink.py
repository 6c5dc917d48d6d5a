from collections.abc import Sequence
from pathlib import Path

import attrs
from dicast import Classes, Event, Sink, hookimpl


@attrs.frozen
class Lines:
    """Write a line for each verdict.

    :param path: the file.
    """

    wants = ("eval.completed",)
    path: Path

    def write(self, events: Sequence[Event]) -> None:
        with self.path.open("a") as file:
            file.writelines(f"{event.subject_id} {event.payload['score']}\n" for event in events)

    def close(self) -> None:
        pass


@hookimpl
def dicast_sinks() -> Classes[Sink]:
    return [Lines]
