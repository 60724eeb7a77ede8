"""Recordings: every distinct dispatch in a file, and running it again on any adapter."""
