"""What users call, by family; webgrad has all of it under its own name. Nothing here knows of GPUs."""
