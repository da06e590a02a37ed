"""`python -m workers.healthcheck`: whether the event loop of the worker on this host turns.

Exit code 0: yes, or Redis is away, which is not the worker's fault and no reason to restart it. 1: no.
"""

import socket
import sys

from cronq.health import heard_from

if __name__ == "__main__":
    sys.exit(heard_from("worker", socket.gethostname()))
