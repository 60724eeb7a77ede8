"""One kernel as loops: index expressions, pulling, domains, passes, and the text."""
