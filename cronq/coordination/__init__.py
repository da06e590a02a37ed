"""WHO may act? What Redis coordinates: the leader's lock, and notices. All of it may be lost at any instant.

Who is authoritative for what
-----------------------------
The **lock** in Redis decides which beat *tries* to lead; it saves work. The **term** in SQL decides which
beat's writes count; it gives the guarantee. A beat leads while it holds the newest term and *trusts* that
it still does.

What is trusted how long
------------------------
A renewal that Redis confirmed is trusted for the lock's time, counted on the local monotonic clock from the
moment the renewal was *sent*: trust ends before the lock can expire, never after, however slow the answer
was. No wall clock takes part.

What happens on each failure
----------------------------
* The leader dies: its lock expires, a standby takes it, starts the next term and goes on from the rows.
* The leader is told to stop: it releases the lock and says so, and a standby takes it at once; one that did
  not hear of it finds the lock free at its next look (0.2 s).
* The leader freezes past the lock and wakes: its trust is over before its next step, and whatever it was in
  the middle of fails at the term's check. It stands by again; it does not exit.
* The lock is another's: the beat steps down at once.
* The lock is gone (Redis was emptied): it is taken again under the same term, if SQL says the term is still
  the newest.
* Redis does not answer: the beat asks SQL instead. While its term is the newest there, nobody else leads,
  because nobody becomes leader without starting a newer one; so it goes on.
* Neither answers: trust runs out, and the beat stands by until one of them is back.
* The beat's main loop hangs, or cannot reach SQL: the renewing thread notices that it stopped moving, and
  gives the lock up after half a minute.

Messages that a former leader still sends do no harm: a job's row decides whether it can be claimed.
"""
