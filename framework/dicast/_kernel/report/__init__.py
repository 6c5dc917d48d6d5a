"""Report of a run, computed by a fold over its events, so that resumed and finished runs report in the same way."""
