"""Chat models that answer from recorded replies: the plugins ``cache`` and ``replay``."""
