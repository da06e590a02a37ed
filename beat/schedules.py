"""What runs when, here: one line each, tasks by name."""

import os

from cronq import cron, delay, every

TENANTS = os.environ.get("REPORT_TENANTS", "acme,globex,initech,umbrella,wonka").split(",")
"""Whose reports are made; the tests ask for two hundred."""

REPORTS_AT = os.environ.get("REPORTS_AT", "* * * * *")
"""Every minute here, to have something to look at; `0 0 * * *` where it is meant."""

TENANT_REPORTS_AT = os.environ.get("TENANT_REPORTS_AT", "0 0 * * *")
"""When every tenant gets its report, on the clocks of its own zone."""

ZONES = os.environ.get(
    "TENANT_ZONES", "UTC,Europe/Berlin,America/New_York,Asia/Tokyo,Australia/Sydney"
).split(",")
"""The zones that tenants live in: a midnight each."""

REPORTS_KEPT_S = float(os.environ.get("REPORTS_KEPT_S", "3600"))
"""Seconds that a report can be fetched."""

SERVICES = dict(each.split("=", 1) for each in os.environ.get("HEALTH_CHECKS", "").split(",") if "=" in each)
"""What is looked at each minute: `HEALTH_CHECKS=api=http://127.0.0.1:8787/healthz,shop=http://…`."""

SCHEDULES = {
    **{
        f"tenant-reports:{zone}": {
            "task": "tasks.daily_report",
            "schedule": cron(
                TENANT_REPORTS_AT,
                tz=zone,
                fan_out={"function": "tasks.tenants:in_zone", "kwargs": {"zone": zone}},
                on_complete="tasks.reports_summary",
                max_attempts=3,
                overlap="queue",
            ),
        }
        for zone in ZONES
    },
    **{
        f"daily-report:{tenant}": {
            "task": "tasks.daily_report",
            "args": (tenant,),
            "schedule": cron(REPORTS_AT, tenant=tenant, max_attempts=3, catch_up="latest"),
        }
        for tenant in TENANTS
    },
    **(
        {"bill-due": {"task": "tasks.bill_due", "schedule": every(os.environ.get("BILL_EVERY", "1m"))}}
        if "PAYMENTS_URL" in os.environ
        else {}
    ),
    **{
        f"check:{name}": {
            "task": "tasks.check_service",
            "args": (name, url),
            "schedule": every(os.environ.get("HEALTH_EVERY", "1m"), max_attempts=3),
        }
        for name, url in SERVICES.items()
    },
    # One clean-up ends before the next begins.
    "delete-expired-sessions": {"task": "tasks.delete_expired_sessions", "schedule": delay("10m")},
    "purge-deleted-customers": {
        "task": "tasks.purge_deleted_customers",
        "schedule": cron("H 3 * * *", jitter="10m"),
    },
    "archive-logs": {
        "task": "tasks.archive_logs",
        "kwargs": {"older_than_s": 86_400.0},
        "schedule": cron("H 4 * * *", jitter="10m"),
    },
    "delete-old-logs": {
        "task": "tasks.delete_old_logs",
        "kwargs": {"older_than_s": 7 * 86_400.0},
        "schedule": cron("H 4 * * *", jitter="10m"),
    },
    "delete-old-reports": {
        "task": "tasks.delete_old_reports",
        "kwargs": {"older_than_s": REPORTS_KEPT_S},
        "schedule": every("30s", catch_up="skip"),
    },
    "delete-old-videos": {
        "task": "tasks.delete_old_videos",
        "kwargs": {"older_than_s": float(os.environ.get("VIDEOS_KEPT_S", "604800"))},
        "schedule": every("10m"),
    },
    # A late model is better than none: what was missed is made up for, what overruns is waited for.
    "refresh-ranking": {
        "task": "tasks.refresh_ranking",
        "schedule": every(
            os.environ.get("RANKING_EVERY", "1h"), catch_up="latest", overlap="queue_one", max_attempts=3
        ),
    },
}

if "REPOSITORIES_DIR" in os.environ:
    SCHEDULES["maintain-repositories"] = {
        "task": "tasks.maintain_repository",
        "schedule": cron(
            os.environ.get("MAINTENANCE_AT", "30 3 * * *"),
            fan_out="tasks.repositories:repositories",
            max_attempts=3,
            jitter="5s",
        ),
    }

if "VISITORS" in os.environ:
    SCHEDULES["visitors"] = {"task": "tasks.visit", "schedule": every("1m", catch_up="skip")}

LIMITS = {
    # A little less than the twenty a second that the service allows: it counts strictly.
    "dependency:payments": {
        "tasks": ["tasks.charge"], "rate": "18/s", "concurrency": 8, "break_after": 5, "break_for_s": 5,
    },
}  # fmt: skip
"""What may run at a time, and how fast."""
