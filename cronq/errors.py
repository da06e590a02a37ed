"""Every error that cronq raises: one class per situation that a caller would handle differently."""


class CronqError(Exception):
    """The base of every error that cronq raises on purpose."""


class SettingsError(CronqError):
    """One or more settings are wrong; the message lists them all."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SchemaError(CronqError):
    """The database's schema is not the one this version of cronq works with."""

    def __init__(self, url: str, found: str | None, wanted: str) -> None:
        self.found, self.wanted = found, wanted
        state = "has no cronq schema" if found is None else f"has cronq schema {found}, not {wanted}"
        super().__init__(f"the database {url} {state}; nothing was started or changed. Run: cronq db upgrade")


class IncompleteSchema(SchemaError):
    """The database says that it has a version of cronq's schema, and has not all of it."""

    def __init__(self, url: str, found: str, missing: list[str]) -> None:
        self.found = self.wanted = found
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        CronqError.__init__(
            self,
            f"the database {url} says that it has cronq schema {found}, but it has no {missing[0]}{more}: a "
            "development version of cronq made it, probably. Nothing was started or changed. If nobody needs "
            "what is in it, remove it (of SQLite: its file) while nothing uses it; otherwise set "
            "CRONQ_DATABASE_URL to another one",
        )


class StoreUnavailable(CronqError):
    """A store that cronq needs does not answer."""

    def __init__(self, what: str, url: str, cause: object) -> None:
        self.what, self.url = what, url
        super().__init__(
            f"{what} at {url} does not answer ({first_line(cause)}); nothing was started or changed. "
            "Start it, or correct the address"
        )


class NotLeader(CronqError):
    """This beat's term is over: another beat leads, so nothing may be planned or published here."""

    def __init__(self, term: int) -> None:
        self.term = term
        super().__init__(f"term {term} is over; another beat leads now")


class JobRefused(CronqError, ValueError):
    """A job that could never run was refused when it was asked for; nothing was stored.

    field: which part of what was asked for is wrong; None: no single one.
    """

    def __init__(self, said: str, *, field: str | None = None) -> None:
        self.field = field
        super().__init__(said)


class UnknownJob(CronqError, LookupError):
    """There is no job with this id."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"there is no job {job_id!r}; list them with: cronq jobs list")


class UnknownDeadLetter(CronqError, LookupError):
    """There is no dead letter with this id."""

    def __init__(self, dead_id: str) -> None:
        self.dead_id = dead_id
        super().__init__(f"there is no dead letter {dead_id!r}; list them with: cronq dead list")


class UnknownSchedule(CronqError, LookupError):
    """There is no schedule with this name."""

    def __init__(self, name: str, similar: list[str]) -> None:
        self.name = name
        hint = f"; did you mean {similar[0]!r}?" if similar else "; list them with: cronq schedules list"
        super().__init__(f"there is no schedule {name!r}{hint}")


class UnknownBatch(CronqError, LookupError):
    """There is no batch with this id."""

    def __init__(self, batch_id: str) -> None:
        self.batch_id = batch_id
        super().__init__(f"there is no batch {batch_id!r}; list them with: cronq batches list")


class BatchRefused(CronqError, ValueError):
    """What was asked of a batch cannot be done to it as it stands; nothing was changed."""


class Permanent(CronqError):
    """Raise this in a task body, or derive from it, when another attempt cannot help: no retry follows."""


class WrongArguments(CronqError):
    """The task's function does not accept the job's arguments; it was not called, and is not tried again."""


class Cancelled(CronqError):
    """Somebody asked for this job to stop; raised in the task body at its next progress call."""


class LeaseLost(CronqError):
    """This worker's lease on the job ran out, so another may have it: stop, nothing will be recorded here."""


class ScheduleRefused(CronqError, ValueError):
    """What was asked of a schedule cannot be done to it as it stands; nothing was changed."""


class UnknownBackfill(CronqError, LookupError):
    """There is no backfill with this id."""

    def __init__(self, backfill_id: str) -> None:
        self.backfill_id = backfill_id
        super().__init__(f"there is no backfill {backfill_id!r}; list them with: cronq backfills list")


class BackfillRefused(CronqError, ValueError):
    """A backfill that cannot be made, or cannot be changed as it stands; nothing was started or changed."""


class VersionConflict(CronqError):
    """Somebody changed the schedule since it was read; nothing was changed now. found: 0 if it is no more."""

    def __init__(self, name: str, seen: int, found: int) -> None:
        self.name, self.seen, self.found = name, seen, found
        what = f"is at version {found}, not {seen}: somebody changed it; read it again first"
        if seen == 0:
            what = f"is there already, at version {found}: change it, or choose another name"
        if found == 0:
            what = "is not there, or was deleted: write it without a version to have it anew"
        super().__init__(f"schedule {name!r} {what}")


class TokenRefused(CronqError, ValueError):
    """A token that cannot be made or revoked: its name is taken, or unknown."""


def first_line(cause: object) -> str:
    """Return the first line of `cause`, which is what fits into a one-line message."""
    return str(cause).strip().split("\n", 1)[0] or type(cause).__name__
