"""Chat models that answer from recorded replies. ``cache`` and ``replay`` are plugins of their own."""
