"""In torchvision's place: data sets of numbers that NumPy draws, for programs that are about something else."""
