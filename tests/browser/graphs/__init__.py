"""Graphs of an operator's that browser tests talk to."""
