"""The event stream as JSON lines."""
