"""Tool servers that do on request what servers do when things go wrong."""
