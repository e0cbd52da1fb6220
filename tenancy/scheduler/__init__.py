"""Sharing the model servers fairly, and the limits of each person.

``seats``      the right to have one model call in flight: asked for, taken up, settled
``pools``      the model servers: declared, taken out when they fail, put back
``limits``     what a person may use: names, bounds, and what is in force
``requests``   the rate of a person's requests
``standing``   where a person's runs and calls stand in the queues
``usage``      what was used, by the hour
``oversight``  what operators see of all this, and set; no content
"""
