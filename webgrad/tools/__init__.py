"""What looks at the stages from outside: profiles, checks, recordings. They may import any stage."""
