"""Guards against writing over a file that is read.

A command with an option for a file that it writes passes that file to :func:`refuse_overwrite`, with the files that it reads, before it
does any work.
"""

from __future__ import annotations

from .._toolkit.overwriting import is_same_file, refuse_overwrite

__all__ = ["is_same_file", "refuse_overwrite"]
