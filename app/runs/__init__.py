"""The life of a run: threads, runs, their events and their state. No HTTP here.

``states``   which states a run has, and what they are called on the wire
``threads``  conversations: stored, searched, deleted
``runs``     accepting and reading runs
``events``   the stored log of a run's stream
``tail``     following that log from a web process
``history``  a thread's state and its earlier checkpoints
``wire``     values as JSON
"""
