"""Where the stages meet: nodes get their values by plans, one kind for GPUs and one for the cpu."""
