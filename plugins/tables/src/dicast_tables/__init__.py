"""Sinks that write a run to a file: CSV, JSON lines or Parquet. Each format is a plugin of its own."""
