"""WHOM to tell that a job ended? One signed POST for each end; a receiver that is down is told later.

The end itself writes down that it has to be told: a trigger of the job table adds a job of the task
`cronq.webhook` in the transaction that ends a job with a `callback_url`, whoever ends it. From then on it is
a job like any other: published, claimed, tried again with longer and longer waits, and at last a dead letter.
"""
