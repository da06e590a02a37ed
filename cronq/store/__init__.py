"""WHAT was decided? The authority: schedules, jobs, attempts, the leader's term. One module per question."""
