"""What can be computed: the table of primitives, shape rules, and everything composed of them."""
