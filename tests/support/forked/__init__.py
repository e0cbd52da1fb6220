"""``stoa`` processes that are forked from one whose imports are done.

Importing takes three seconds of CPU, most of what a process of a test costs, and shows nothing:
what starts the command from nothing is shown by the tests of the command line and of ``stoa dev``.
"""

from tests.support.forked.process import Running as Running
from tests.support.forked.process import end as end
from tests.support.forked.process import run as run
from tests.support.forked.process import start as start
from tests.support.forked.process import stop as stop
