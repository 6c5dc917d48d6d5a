"""Judges that score agent turns from their trace, by versioned rubrics and at no cost."""
