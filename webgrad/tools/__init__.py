"""What looks at the stages from outside: profiles, memory, checks, recordings, reports.

In: what the stages tell an observer. Out: what a user reads. No stage knows of any of it.
"""
