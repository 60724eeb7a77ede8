"""Diffusion models: networks, schedulers and pipelines that make pictures, by published weights or our own."""
