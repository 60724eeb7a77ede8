"""What looks at the stages from outside: profile, memory, check, record and replay, kernels, doctor."""
