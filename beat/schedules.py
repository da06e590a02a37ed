"""What runs when, here: one line each, tasks by name."""

import os

from cronq import cron, every

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
    "delete-old-reports": {
        "task": "tasks.delete_old_reports",
        "kwargs": {"older_than_s": 3600.0},
        "schedule": every("30s", catch_up="skip"),
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
