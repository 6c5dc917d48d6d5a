"""Rows from JSON lines and CSV files."""
