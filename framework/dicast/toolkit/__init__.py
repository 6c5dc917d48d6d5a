"""Building blocks for plugins, one public module each.

:mod:`dicast.toolkit.conversations` builds sessions from the messages of any tool's format, :mod:`dicast.toolkit.sessions` makes the subjects
of a session, :mod:`dicast.toolkit.scanning` reads the values of a JSON document one at a time, :mod:`dicast.toolkit.json_data` checks JSON data,
:mod:`dicast.toolkit.yaml` reads and writes YAML, :mod:`dicast.toolkit.surrogates` reads JSON with texts that are not Unicode.
"""

from __future__ import annotations
