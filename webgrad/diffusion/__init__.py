"""Diffusion models: networks, schedulers and pipelines that make pictures."""
