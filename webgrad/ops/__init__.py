"""What an op is: its row, its shape rule, and the nodes made of it. Functions of users are in functions/."""
