"""Graphs that benchmarks run."""
