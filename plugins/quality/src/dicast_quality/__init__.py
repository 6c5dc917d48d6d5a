"""Quality of the judged work and agreement of judges: ``dicast quality`` and ``dicast agreement``, readers of a ledger."""

from __future__ import annotations
