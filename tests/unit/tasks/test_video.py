import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tasks import video
from tasks.video import TranscodeFailed, duration_of, make_clip, progress_seconds, run_ffmpeg, transcode
from tests.support.processes import Processes, wait_for
from tests.unit.tasks.conftest import job

SIZE = "128x96"
FOREVER = ["-re", "-f", "lavfi", "-i", f"testsrc2=size={SIZE}:rate=25:duration=600", "-f", "null", "-"]


class Enough(Exception):
    pass


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.mp4"
    make_clip(path, lambda _: None, seconds=1, size=SIZE)
    return path


def ffmpegs_of(pid: int) -> list[psutil.Process]:
    return [one for one in psutil.Process(pid).children() if "ffmpeg" in one.name()]


def test_progress_is_read_from_ffmpegs_own_words() -> None:
    said = "frame=0\nout_time_us=N/A\nprogress=continue\nout_time_us=-20\nout_time_us=1500000\nprogress=end\n"
    assert list(progress_seconds(said.splitlines(keepends=True))) == [0, 1.5]


def test_every_variant_is_made_step_by_step(clip: Path, folders: Path) -> None:
    with job(fire_time=None) as seen:
        result = transcode(str(clip), ["480p", "240p"])
    assert result["seconds"] == pytest.approx(1, abs=0.1)
    for name in ("480p", "240p"):
        made = folders / "videos" / "job-1" / f"{name}.mp4"
        assert result["files"][name] == str(made)
        assert duration_of(made) == pytest.approx(1, abs=0.1)
    assert sorted(one.name for one in (folders / "videos" / "job-1").iterdir()) == [
        "240p.mp4",
        "480p.mp4",
        "thumbnail.jpg",
    ]
    assert Path(result["thumbnail"]).read_bytes().startswith(b"\xff\xd8")
    steps = list(dict.fromkeys(one["current_step"] for one in seen))
    assert steps == ["transcode to 480p", "transcode to 240p", "take a still", "done"]
    done = [one["steps_completed"] for one in seen]
    assert done == sorted(done)
    assert any(value % 1 for value in done)
    assert done[-1] == seen[-1]["steps_total"] == 3


def test_without_a_source_it_makes_a_clip(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video.make_clip, "__defaults__", (0.4, SIZE))
    with job(fire_time=None) as seen:
        result = transcode(variants=["240p"])
    assert result["source"] == str(folders / "videos" / "job-1" / "source.mp4")
    assert seen[0]["current_step"] == "make the test clip"
    assert seen[-1]["steps_total"] == 3


def test_no_video_is_named_by_ffmpegs_last_words(tmp_path: Path) -> None:
    text = tmp_path / "words.mp4"
    text.write_text("not a film")
    with pytest.raises(TranscodeFailed, match=r"words\.mp4 is not a video(.|\n)*Invalid data"):
        transcode(str(text))


def test_failure_carries_ffmpegs_last_words_and_leaves_no_file(clip: Path, folders: Path) -> None:
    with pytest.raises(TranscodeFailed, match=r"ffmpeg ended with \d+:\n(.|\n)*nosuchfilter"):
        run_ffmpeg(["-i", clip, "-vf", "nosuchfilter", folders / "out.mp4"], 1, lambda _: None)
    assert not (folders / "out.mp4").exists()


@pytest.mark.parametrize("source", ["/nowhere/film.mp4", "http://127.0.0.1/film.mp4", "concat:/etc/passwd"])
def test_only_files_are_taken(source: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no video"):
        transcode(source)


@pytest.mark.parametrize("variants", [["9000p"], []])
def test_unknown_variant_is_refused(variants: list[str]) -> None:
    with pytest.raises(ValueError, match="choose from 1080p, 720p"):
        transcode(variants=variants)


def test_ffmpeg_ends_with_the_body() -> None:
    def stop(_: float) -> None:
        assert len(ffmpegs_of(os.getpid())) == 1
        raise Enough

    with pytest.raises(Enough):
        run_ffmpeg(FOREVER, 600, stop)
    assert ffmpegs_of(os.getpid()) == []


def test_ffmpeg_dies_with_a_killed_worker(processes: Processes) -> None:
    program = f"from tasks.video import run_ffmpeg; run_ffmpeg({FOREVER!r}, 600, lambda _: None)"
    worker = processes.start("worker", sys.executable, "-c", program)
    (ffmpeg,) = wait_for(lambda: ffmpegs_of(worker.pid), 20, "ffmpeg to start")
    worker.signal(signal.SIGKILL)
    _gone, alive = psutil.wait_procs([ffmpeg], timeout=10)
    assert alive == []
