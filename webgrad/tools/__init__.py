"""Tools that look at the stages from outside: they see everything, and no stage knows of them."""
