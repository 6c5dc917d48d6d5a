"""Truth metrics that compare an output with its reference."""
