"""WHO decides that a job starts? Plans ahead, publishes at the due instant, and leaves nothing undecided."""
