"""The rows that ``dicast init`` writes if the user names no data."""

from __future__ import annotations

ROWS = """id,question,answer,expected
1,What is the capital of Turkey?,Ankara,Ankara
2,How many legs has a spider?,8,8
3,Which planet is nearest to the sun?,Mercury,Mercury
4,What is the capital of Australia?,Sydney,Canberra
5,What is the chemical symbol of iron?,Fe,Fe
"""
"""Example rows. One answer of the five is wrong: the gate passes, and ``dicast show`` has a failed row to show."""
