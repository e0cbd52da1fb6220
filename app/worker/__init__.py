"""A worker process: one small service per duty, each with the same ``start``/``stop``.

``lease``    keeps the worker's lease alive, from its own thread and connection
``claim``    takes runs from the queue while there is room
``execute``  runs one claimed run to its end
``writer``   stores what a run streams, in flushes
``parts``    turns what LangGraph streams into events
``outcome``  what an exception makes of a run
``reap``     puts the runs of dead workers back
``process``  puts them together
"""
