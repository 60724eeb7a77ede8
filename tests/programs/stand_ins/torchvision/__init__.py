"""In torchvision's place: images that NumPy draws, for programs that are about something else."""
