"""Building blocks for plugins, one public module each.

==================  ========================================================,
:mod:`dicast.toolkit.encodings` tells the encoding of text.
"""

from __future__ import annotations
