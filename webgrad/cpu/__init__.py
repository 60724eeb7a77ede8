"""Plans of native code for the cpu."""
