"""What looks at the stages from outside: profiles, checks, recordings, memory, and what a machine can do."""
