"""Verdicts as CSV, safe to open in a spreadsheet."""
