"""A worker process: one small service per duty, each with the same ``start``/``stop``.

``lease``        keeps the worker's lease alive, from its own thread and connection
``claim``        takes runs from the queue while there is room, and drains
``watch``        learns that runs are to stop, or were lost
``execute``      takes a claimed run up, carries it out, settles it
``begin``        what an attempt begins with
``attempt``      drives the graph, once
``follow_stop``  sees that a graph ends that is to stop
``repair``       brings a thread in order whose graph was cut off
``writer``       stores what a run streams, in flushes
``parts``        turns what LangGraph streams into events
``states``       which of them refer to a checkpoint for their values
``public``       what of them is not for clients
``outcome``      what becomes of the run
``reap``         puts the runs of dead workers back
``retention``    drops what is kept for a while only
``end``          why and how fast the process ends
``process``      puts them together
"""
