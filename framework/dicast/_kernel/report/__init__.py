"""What a run amounts to: a fold over its events, so that a resumed and a finished run report alike."""
