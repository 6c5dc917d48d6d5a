"""``dicast init``: a pipeline for existing data, or for a promptfoo configuration. Imported only when it is called."""
