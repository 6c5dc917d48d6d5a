"""Rubrics for dicast: letters to customers."""
