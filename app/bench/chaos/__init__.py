"""Chaos: a deployment under load whose parts die at random, and the proof of what held.

``promises``      what clients were told: the runs that were accepted, and what they streamed
``client``        a person who talks, stops, goes on, and reads on elsewhere when a stream breaks
``wire``          the way to Postgres, which can be cut with and without a word
``witness``       a second record of how runs end, kept by triggers of the proof's own
``rows``          what must hold in the database once everything has settled
``conversations`` what must hold in each thread
``logs``          what must hold of each stream, read from any web process
``proof``         the three together
``member``        one process, and what can be done to it
``cluster``       all of them; what ends is replaced
``faults``        what goes wrong, and how often
``traffic``       what people do
``stage``         a cluster, a model, people, and what they were told
``run``           puts it together; ``report`` says what came of it
"""
