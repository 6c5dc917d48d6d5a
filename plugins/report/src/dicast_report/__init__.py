"""Reports that a person looks at: one HTML file, Markdown, a badge."""

from __future__ import annotations
