"""The doctor's probes: each takes an open device, measures it, and gives one or several findings."""
