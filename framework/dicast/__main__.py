"""Run the command line: ``python -m dicast``."""
