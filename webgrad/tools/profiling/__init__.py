"""Profiles: collecting what happened, adding it up, and showing it as a table, a trace and a page."""
