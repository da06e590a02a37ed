"""The fault bench: real beats, workers, brokers and databases, hurt on purpose, and a checker that counts.

`workload` says what is to happen and when, by an arithmetic that is not cronq's; the task bodies write down
what did happen (`journal`); `injector` hurts the `installation` and writes down how; `checker`, which knows
nothing of cronq but its tables' rows, judges. `make faults`, `make soak` and `make mutants` run it.
"""
