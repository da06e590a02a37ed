"""HOW does a job reach a worker? Messages, and the two brokers that carry them.

A message is a hint: "job X is ready". Losing one delays the job until it is looked for; doubling one is
refused when the second copy is claimed.
"""
