"""Cheap checks of form: format, keywords, length."""
