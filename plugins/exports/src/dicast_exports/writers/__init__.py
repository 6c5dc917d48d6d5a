"""Runs as files of other tools, for ``dicast export``."""
