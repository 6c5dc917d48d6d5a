"""The conventions by which instrumentations write the messages, calls and figures of a span."""
