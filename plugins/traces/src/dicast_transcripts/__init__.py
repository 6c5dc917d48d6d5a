"""Sessions that coding agents and agent frameworks recorded, in the formats of their files."""

from __future__ import annotations

from dicast import Source, hookimpl

from .adk import Adk
from .atif import Atif
from .claude_code import ClaudeCode
from .codex import Codex
from .copilot import Copilot
from .gemini_cli import GeminiCli
from .opencode import OpenCode
from .openhands import OpenHands
from .swe_agent import SweAgent

__all__ = ["Adk", "Atif", "ClaudeCode", "Codex", "Copilot", "GeminiCli", "OpenCode", "OpenHands", "SweAgent"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Return a source for each tool."""
    return [ClaudeCode, Codex, GeminiCli, Copilot, OpenCode, Atif, SweAgent, OpenHands, Adk]
