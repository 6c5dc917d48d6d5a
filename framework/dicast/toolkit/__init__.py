"""Building blocks for plugins, one public module each.

==================  ================================================================
``conversations``   builds sessions from the messages of any tool's format
``dialects``        reads the messages of model providers
``sessions``        makes the subjects of a session
``scanning``        reads the values of a JSON document one at a time
``json_data``       checks JSON data
``yaml``            reads and writes YAML
``encodings``       tells the encoding of text
``money``           writes amounts of money
``surrogates``      reads JSON with texts that are not Unicode
``references``      compares with lists of references
``files``           opens a file that a user names, within limits
``batches``         collects the calls of chat models, and sends them in batches
``overwriting``     keeps a command from writing over a file that it reads
``endpoint``        sends HTTP requests for chat models and other services
``media``           reads images, sounds and files
``gallery``         holds the places of media in texts
``media_tokens``    counts the most tokens of media
``connections``     limits the connections of a server
==================  ================================================================
"""

from __future__ import annotations
