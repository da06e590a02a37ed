"""`python -m beat.healthcheck`: whether the beat on this host was heard from lately.

Exit code 0: yes, or Redis is away, which is not the beat's fault and no reason to restart it. 1: no.
"""

import socket
import sys

from cronq.health import heard_from

if __name__ == "__main__":
    sys.exit(heard_from("beat", socket.gethostname()))
