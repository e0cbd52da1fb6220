"""What earlier processes left behind, and what may be done about it: nothing without proof.

``facts``      what can be found out about one thing
``rules``      the table from facts to a verdict: pure, and the only place that decides
``processes``  whether a process of this machine is still the one that somebody wrote down
``children``   processes of tool servers that were written down
``passing``    one pass: look, classify, act
``summary``    what a pass found and did, and what of it goes into the log
"""
