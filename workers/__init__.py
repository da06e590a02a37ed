"""The worker processes here. How a worker works: `cronq/worker`."""
