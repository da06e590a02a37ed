"""Every fault that the bench knows. Each is one function: it hurts the installation, and writes down how."""

from tests.faults.bench.catalogue import beats, load, network, servers, together, workers
from tests.faults.bench.catalogue.kinds import KINDS, Kind

__all__ = ["KINDS", "Kind", "beats", "load", "network", "servers", "together", "workers"]
