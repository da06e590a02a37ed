"""A repository is packed once a day, by one at a time; one that fails three times in a row is flagged."""

import threading

import pytest

from cronq import Permanent
from tasks import repositories
from tests.support.repositories import damage, git, loose_objects, make_repository


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REPOSITORIES_DIR", str(tmp_path))
    monkeypatch.setattr(repositories.time, "sleep", lambda _seconds: None)
    return tmp_path


def test_a_repository_is_packed_and_its_content_stays(folder):
    one = make_repository(folder / "one")
    before = git(one, "log", "--format=%H")
    assert loose_objects(one) > 0
    assert repositories.maintain_repository("one")["already_done"] is False
    assert loose_objects(one) == 0
    assert git(one, "log", "--format=%H") == before
    assert not list((one / ".git" / "refs" / "tags").iterdir())


def test_it_is_done_once_a_day(folder):
    one = make_repository(folder / "one")
    repositories.maintain_repository("one")
    (one / "new.txt").write_text("new")
    git(one, "add", ".")
    assert repositories.maintain_repository("one")["already_done"] is True
    assert loose_objects(one) > 0


def test_two_at_once_wait_for_each_other(folder):
    make_repository(folder / "one")
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(repositories.maintain_repository("one"))) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(each["already_done"] for each in done) == [False, True]


def test_three_failures_in_a_row_flag_it_and_it_is_left_alone(folder):
    make_repository(folder / "good")
    damage(make_repository(folder / "bad"))
    for _ in range(3):
        assert list(repositories.repositories()) == ["bad", "good"]
        with pytest.raises(repositories.RepositoryDamaged, match="git fsck failed in bad"):
            repositories.maintain_repository("bad")
    assert list(repositories.repositories()) == ["good"]


def test_failures_that_are_not_in_a_row_do_not_count(folder):
    bad = make_repository(folder / "bad")
    kept = folder / "kept"
    for day in range(3):
        (bad / ".git" / "HEAD").rename(kept)
        (bad / ".git" / "HEAD").write_text("nonsense\n")
        with pytest.raises(repositories.RepositoryDamaged):
            repositories.maintain_repository("bad")
        kept.rename(bad / ".git" / "HEAD")
        assert repositories.maintain_repository("bad")["already_done"] is False
        for mark in (folder / ".maintenance" / "bad").glob("*.done"):
            mark.unlink()
        assert list(repositories.repositories()) == ["bad"], day


@pytest.mark.parametrize("name", ["../elsewhere", "nothing", ".maintenance"])
def test_what_is_no_repository_is_refused_for_good(folder, name):
    (folder / ".maintenance").mkdir()
    with pytest.raises(Permanent):
        repositories.maintain_repository(name)


def test_it_pauses_after_each_one_that_failed_too(folder, monkeypatch):
    paused = []
    monkeypatch.setattr(repositories.time, "sleep", paused.append)
    damage(make_repository(folder / "bad"))
    make_repository(folder / "good")
    repositories.maintain_repository("good")
    with pytest.raises(repositories.RepositoryDamaged):
        repositories.maintain_repository("bad")
    assert len(paused) == 2
    assert all(0.1 <= seconds <= 0.2 for seconds in paused)
