"""The status API: what every job does, what ran, what will run, what did not and why; and acting on it."""
