"""Whether a GPU computes what the cpu does: graphs kernel by kernel, scripts, models."""
