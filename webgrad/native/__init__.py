"""Native code for the cpu, made at run time for the processor at hand: LLVM's text in, machine code out."""
