"""``stoa`` processes that are forked from one whose imports are done.

Importing takes three seconds of CPU, most of what a process of a test costs, and shows nothing:
what starts the command from nothing is shown by the tests of the command line and of ``stoa dev``.
A ``stoa dev`` that is forked has its programs forked, too, and so has a bench its service.
"""

from tests.support.forked.piped import Piped as Piped
from tests.support.forked.piped import piped as piped
from tests.support.forked.process import end as end
from tests.support.forked.process import run as run
from tests.support.forked.process import start as start
from tests.support.forked.process import stop as stop
from tests.support.forked.running import Running as Running
