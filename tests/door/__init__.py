"""webgrad.torch without torch."""
