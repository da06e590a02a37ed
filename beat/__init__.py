"""The beat process here. How a beat works: `cronq/beat`."""
