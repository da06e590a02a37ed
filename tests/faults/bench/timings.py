"""The times that the bench gives to cronq: short, so that every fault outlives them."""

LOCK_S, LEASE_S, REPUBLISH_S = 1.0, 3.0, 3.0
HORIZON_S = 20.0
"""What is planned in the middle of a fault is to be due before the run is over."""
