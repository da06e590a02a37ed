"""Transcodes a video into several sizes with ffmpeg, and follows ffmpeg's own progress."""

import ctypes
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import imageio_ffmpeg
from celery import shared_task

from cronq import current_job, progress
from tasks.files import name_for, replacing, videos_dir

HEIGHTS = {"1080p": 1080, "720p": 720, "480p": 480, "360p": 360, "240p": 240}
CLIP_SECONDS = 6
STDERR_LINES = 8
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
Advance = Callable[[float], None]


class TranscodeFailed(RuntimeError):
    """ffmpeg gave up; the message ends with what it said last."""


@shared_task(name="tasks.transcode")  # type: ignore[untyped-decorator]
def transcode(source: str | None = None, variants: Sequence[str] = ("480p", "240p")) -> dict[str, Any]:
    """Write each variant of `source` (None: of a test clip made here) and say where they are."""
    unknown = [name for name in variants if name not in HEIGHTS]
    if unknown or not variants:
        raise ValueError(f"unknown variants {unknown}: choose from {', '.join(HEIGHTS)}")
    folder = videos_dir() / name_for(current_job())
    steps = Steps(len(variants) + 1 + (source is None))
    if source is None:
        clip = folder / "source.mp4"
        make_clip(clip, steps.begin("make the test clip"))
    else:
        clip = Path(source)
        if not clip.is_file():
            raise FileNotFoundError(f"there is no video {source}")
    seconds = duration_of(clip)
    files = {}
    for variant in variants:
        target = folder / f"{variant}.mp4"
        scale(clip, target, HEIGHTS[variant], seconds, steps.begin(f"transcode to {variant}"))
        files[variant] = str(target)
    still = folder / "thumbnail.jpg"
    thumbnail(clip, still, seconds / 2, steps.begin("take a still"))
    steps.end()
    return {"source": str(clip), "seconds": seconds, "files": files, "thumbnail": str(still)}


class Steps:
    """Progress in steps, each of which moves on as ffmpeg does."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.begun = 0

    def begin(self, name: str) -> Advance:
        """Start the next step; the function returned takes how much of it is done, 0 to 1."""
        before = self.begun
        self.begun += 1
        progress.update(before, self.total, name)
        return lambda part: progress.update(before + round(min(part, 0.99), 2), self.total, name)

    def end(self) -> None:
        """Say that all is done."""
        progress.update(self.total, self.total, "done")


def make_clip(target: Path, advance: Advance, seconds: float = CLIP_SECONDS, size: str = "1280x720") -> None:
    """Write a short test film."""
    pattern = f"testsrc2=size={size}:rate=25:duration={seconds}"
    with replacing(target) as part:
        run_ffmpeg(["-f", "lavfi", "-i", pattern, *_encoded("23"), part], seconds, advance)


def scale(source: Path, target: Path, height: int, seconds: float, advance: Advance) -> None:
    """Write `source` in another height; the width follows."""
    # file: keeps ffmpeg from reading a name such as `concat:…` or `http:…` as one of its protocols.
    given = ["-i", f"file:{source.absolute()}", "-map", "0:v:0", "-map", "0:a?"]
    with replacing(target) as part:
        run_ffmpeg([*given, "-vf", f"scale=-2:{height}", *_encoded("26"), part], seconds, advance)


def thumbnail(source: Path, target: Path, at_s: float, advance: Advance) -> None:
    """Write one frame of `source` as a picture."""
    with replacing(target) as part:
        seek = ["-ss", f"{at_s:.2f}", "-i", f"file:{source.absolute()}"]
        run_ffmpeg([*seek, "-map", "0:v:0", "-frames:v", "1", "-vf", "scale=320:-2", part], 0, advance)


def duration_of(source: Path) -> float:
    """Return how many seconds `source` lasts."""
    argv = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-nostdin", "-i", f"file:{source.absolute()}"]
    ran = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    said = ran.stderr
    found = re.search(r"Duration: (\d+):(\d+):(\d+\.?\d*)", said)
    if found is None:
        raise TranscodeFailed(f"{source} is not a video that ffmpeg can read:\n{_last_lines(said)}")
    hours, minutes, seconds = found.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def run_ffmpeg(arguments: Sequence[str | Path], seconds: float, advance: Advance) -> None:
    """Run ffmpeg, passing on how much of `seconds` is done; it never outlives this call."""
    argv = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-nostdin", "-loglevel", "error", "-y"]
    argv += ["-stats_period", "0.1", "-progress", "pipe:1", *map(str, arguments)]
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        ffmpeg = subprocess.Popen(  # noqa: S603 - no shell, and only ffmpeg
            argv,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509
        )
        try:
            assert ffmpeg.stdout is not None
            for done_s in progress_seconds(ffmpeg.stdout):
                advance(done_s / seconds if seconds > 0 else 0)
            code = ffmpeg.wait()
        finally:
            _end(ffmpeg)
        if code != 0:
            raise TranscodeFailed(f"ffmpeg ended with {code}:\n{_tail_of(stderr)}")


def progress_seconds(lines: Iterable[str]) -> Iterator[float]:
    """Yield the position in the output, in seconds, from the lines of `-progress`."""
    for line in lines:
        key, _, value = line.strip().partition("=")
        # Before the first frame the position is N/A.
        if key == "out_time_us" and value.lstrip("-").isdigit():
            yield max(0, int(value)) / 1_000_000


def _encoded(quality: str) -> list[str]:
    return ["-c:v", "libx264", "-preset", "veryfast", "-crf", quality, "-pix_fmt", "yuv420p", "-f", "mp4"]


def _die_with_parent() -> None:
    # A worker that is killed runs no `finally`.
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(ffmpeg: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        ffmpeg.kill()
    ffmpeg.wait()
    if ffmpeg.stdout is not None:
        ffmpeg.stdout.close()


def _tail_of(stderr: IO[str]) -> str:
    stderr.seek(0)
    return _last_lines(stderr.read())


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-STDERR_LINES:])
