"""WHO does the work? Claims a job, keeps its lease, runs the task's body, settles the outcome."""
