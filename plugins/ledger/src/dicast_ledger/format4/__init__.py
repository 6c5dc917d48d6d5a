"""Format 4: a chain over lines, and lines in compressed blocks."""
