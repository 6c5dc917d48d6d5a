"""The pipeline file: read, checked and built into components."""
