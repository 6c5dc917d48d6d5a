"""Judges that are a rubric and a check of its input. ``agent`` and ``rag`` are plugins of their own."""
