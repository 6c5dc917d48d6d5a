"""The command ``dicast export``: a run of the ledger as a file that other tools read."""
