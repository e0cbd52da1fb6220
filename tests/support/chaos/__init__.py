"""``stoa bench chaos`` whose cluster is forked: a new process costs a tenth of a second of CPU.

``python -m tests.support.chaos`` is ``stoa bench chaos``, with the same faults, load and proof.
"""
