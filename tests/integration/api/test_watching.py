"""Watching the system: health, metrics, leader, queues, overview."""

from datetime import timedelta

from fastapi.testclient import TestClient
from sqlalchemy import select, update

from cronq.api.metrics import LAG, Metrics
from cronq.app import Cronq
from cronq.cli.status import _facts
from cronq.job import State, scheduled_job_id
from cronq.limits import limits_from
from cronq.schedule import Reason
from cronq.store.agenda import mark_published, read_jobs
from cronq.store.breakers import note_failure
from cronq.store.limits import write_limits
from cronq.store.room import mark_waiting
from cronq.store.tables import attempt, job
from cronq.store.terms import begin_term

from .steps import PAGE, ask, declare, end, plan, start


def test_readiness_names_what_is_down(client: TestClient, parts: Cronq) -> None:
    well = client.get("/readyz")
    assert well.status_code == 200
    assert all(check["ok"] for check in well.json()["checks"].values())
    parts.app.conf.broker_url = "redis://user:hunter2@127.0.0.1:1/0"
    parts.app.amqp.app.pool.force_close_all()
    down = client.get("/readyz")
    assert down.status_code == 503
    checks = down.json()["checks"]
    assert (checks["database"]["ok"], checks["broker"]["ok"]) == (True, False)
    assert "hunter2" not in down.text


def test_metrics_count_each_end_once(client: TestClient, parts: Cronq) -> None:
    schedule_id = declare(parts)
    counted = Metrics(parts.database.clock() - timedelta(hours=1))
    fire = parts.database.clock() - timedelta(seconds=2)
    plan(parts, schedule_id, "hourly", fire)
    end(parts, scheduled_job_id(schedule_id, fire))
    plan(parts, schedule_id, "hourly", fire - timedelta(hours=1), state=State.SKIPPED, reason=Reason.OVERLAP)
    end(parts, ask(client)["id"], state=State.FAILED, error="no")
    end(parts, ask(client)["id"], state=State.RETRYING, error="no")
    age(parts, LAG + timedelta(seconds=60))
    for _ in range(2):
        text = counted.scrape(parts).decode()
        assert 'cronq_jobs_ended_total{outcome="COMPLETED",task="demo.work"} 1.0' in text
        assert 'cronq_jobs_ended_total{outcome="FAILED",task="demo.work"} 1.0' in text
        assert 'cronq_attempts_total{kind="error",outcome="FAILED"} 2.0' in text
        assert 'cronq_retries_total{reason="error"} 1.0' in text
        assert 'cronq_fires_total{disposition="job"} 1.0' in text
        assert 'cronq_fires_total{disposition="skipped"} 1.0' in text
        assert 'cronq_fires_skipped_total{reason="overlap"} 1.0' in text
        assert "cronq_start_lateness_seconds_count 1.0" in text
        assert "cronq_dead_letters 1.0" in text
        assert "cronq_leader 0.0" in text
    assert "cronq_dead_letters 1.0" in client.get("/metrics").text


def test_drift_is_how_far_two_starts_are_from_where_their_due_times_put_them(parts: Cronq) -> None:
    schedule_id = declare(parts)
    counted = Metrics(parts.database.clock() - timedelta(hours=1))
    now = parts.database.clock()
    for ago in (70, 10):  # both start now, a minute closer to each other than they were due
        fire = now - timedelta(seconds=ago)
        plan(parts, schedule_id, "hourly", fire)
        end(parts, scheduled_job_id(schedule_id, fire))
    age(parts, LAG + timedelta(seconds=60))
    text = counted.scrape(parts).decode()
    assert 'cronq_start_drift_seconds_bucket{le="15.0"} 0.0' in text
    assert "cronq_start_drift_seconds_count 1.0" in text


def test_metrics_tell_how_long_the_longest_job_has_been_running(client: TestClient, parts: Cronq) -> None:
    assert "cronq_longest_running_seconds 0.0" in client.get("/metrics").text
    start(parts, ask(client)["id"])
    with parts.database.begin() as connection:
        connection.execute(update(job).values(started_at=parts.database.now(-3605)))
    assert "cronq_longest_running_seconds 36" in client.get("/metrics").text


def age(parts: Cronq, by: timedelta) -> None:
    """Move every job and attempt into the past."""

    with parts.database.begin() as connection:
        for table, names in ((job, ("started_at", "updated_at", "finished_at")), (attempt, ("ended_at",))):
            for row in connection.execute(select(table)).mappings().all():
                moved = {name: row[name] - by for name in names if row[name] is not None}
                key = table.c.id == row["id"] if table is job else table.c.token == row["token"]
                connection.execute(update(table).where(key).values(moved))


def test_leader_queues_and_overview_answer_without_a_beat(client: TestClient, parts: Cronq) -> None:
    ask(client)
    assert client.get("/api/leader").json()["holder"] is None
    assert client.get("/api/queues").json() == {"items": [], "unserved": []}
    assert client.get("/api/workers").json() == {"items": []}
    summary = client.get("/api/overview").json()
    assert summary["unfinished"] == {"SCHEDULED": 1}
    assert summary["schedules"] == {"total": 0, "paused": 0, "faulty": 0}
    assert "Nobody leads" in client.get("/", headers=PAGE).text


def test_workers_are_listed_with_what_they_run(client: TestClient, parts: Cronq) -> None:
    parts.workers.tell("w@host", host="host", pid=7, queues=["cpu"], slots=4)
    start(parts, ask(client)["id"])
    (worker,) = client.get("/api/workers").json()["items"]
    assert worker == {
        "name": "w@host", "host": "host", "pid": 7, "queues": ["cpu"], "slots": 4, "running": 1,
        "heard_from": True,
    }  # fmt: skip


def test_what_no_live_worker_can_take_is_flagged_at_once_wherever_people_look(
    client: TestClient, parts: Cronq
) -> None:
    sent = client.post("/api/jobs", json={"type": "t", "queue": "gpu"}).json()["id"]
    placed = client.post("/api/jobs", json={"type": "t", "needs": "cpu@eu-west,eu-central"}).json()
    assert (placed["queue"], placed["needs"]) == ("cpu.eu-west", "cpu@eu-west,eu-central")
    mark_published(parts.database, read_jobs(parts.database, [sent]))
    mark_waiting(parts.database, [(placed["id"], "place:cpu@eu-west,eu-central")])
    parts.workers.tell("w@host", host="host", pid=7, queues=["celery"], slots=4)

    by_queue, by_needs = client.get("/api/queues").json()["unserved"]
    assert (by_queue["queue"], by_queue["jobs"]) == ("gpu", 1)
    assert (by_needs["needs"], by_needs["jobs"]) == ("cpu@eu-west,eu-central", 1)
    said = ("no live worker consumes the queue gpu", "no live worker offers cpu@eu-west,eu-central")
    page, shell = client.get("/", headers=PAGE).text, _facts(parts)["troubles"]
    assert all(sentence in page and any(sentence in line for line in shell) for sentence in said)
    metrics = client.get("/metrics").text
    assert 'cronq_unserved_jobs{queue="gpu"} 1.0' in metrics
    assert 'cronq_unserved_jobs{queue="cpu@eu-west,eu-central"} 1.0' in metrics

    parts.workers.tell("w2@host", host="host", pid=8, queues=["gpu", "cpu.eu-central"], slots=4)
    assert client.get("/api/queues").json()["unserved"] == []
    assert "no live worker" not in client.get("/", headers=PAGE).text
    assert "cronq_unserved_jobs{" not in client.get("/metrics").text


def test_a_queue_that_only_the_leader_knows_the_name_of_counts_as_the_leader_routes_it(
    client: TestClient, parts: Cronq
) -> None:
    sent = ask(client)["id"]
    mark_published(parts.database, read_jobs(parts.database, [sent]))
    parts.workers.tell("w@host", host="host", pid=7, queues=["special"], slots=4)
    task = client.get(f"/api/jobs/{sent}").json()["type"]
    assert client.get("/api/queues").json()["unserved"] == [], "nobody knows where it goes"
    parts.beats.tell("me", host="host", pid=1, leads=True, clock_offset_s=0, routes={task: "other"})
    assert client.get("/api/queues").json()["unserved"][0]["queue"] == "other"
    parts.beats.tell("me", host="host", pid=1, leads=True, clock_offset_s=0, routes={task: "special"})
    assert client.get("/api/queues").json()["unserved"] == []


def test_readiness_names_nobody(client: TestClient, parts: Cronq) -> None:
    begin_term(parts.database, shard=0, holder="secret-host:4711:ab", host="secret-host", pid=4711)
    parts.redis.set(f"{parts.settings.key_prefix}leader:0", "secret-host:4711:ab")
    said = client.get("/readyz")
    assert said.json()["leader"] in (True, False)
    assert "secret-host" not in said.text
    assert "4711" not in said.text


def test_a_dependency_that_is_spared_is_shown_with_what_it_said(client: TestClient, parts: Cronq) -> None:
    key, given = "dependency:payments", {"tasks": ["t"], "break_after": 1, "break_for_s": 30}
    write_limits(
        parts.database, {key: given}, term=begin_term(parts.database, shard=0, holder="me", host="h", pid=1),
        source="code:x",
    )  # fmt: skip
    assert "is spared" not in client.get("/", headers=PAGE).text
    note_failure(parts.database, key, limits_from({key: given}).limits[key], "it said 503")
    page = client.get("/", headers=PAGE).text
    assert f"{key} fails, and is spared until" in page
    assert "it said 503" in page
    assert 'cronq_dependency_broken{key="dependency:payments"} 1.0' in client.get("/metrics").text


def test_what_a_queue_wants_is_told_under_the_name_that_the_files_in_deploy_scale_by(
    client: TestClient, parts: Cronq
) -> None:
    client.post("/api/jobs", json={"type": "t", "queue": "celery"})
    mark_published(
        parts.database, read_jobs(parts.database, [client.get("/api/jobs").json()["items"][0]["id"]])
    )
    assert 'cronq_wanted_slots{queue="celery"} 1.0' in client.get("/metrics").text
