"""WHO looks after it? Services that only the leader runs; one per file, named by what it does to what."""
