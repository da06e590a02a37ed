"""The work of this deployment: one realistic system per module, reached by task name."""
