"""``dicast init``: a pipeline for data that is there, or for a promptfoo configuration. Imported only when it is called."""
