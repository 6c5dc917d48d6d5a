"""Agent conversations: trace events and chat transcripts."""
