"""Leaving: the steps of an erasure, what proves it, and what stays for a while."""
