"""Readers of the conventions in which instrumentations write the messages, calls and figures of a span."""
