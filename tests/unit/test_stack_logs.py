"""The development stack bounds the logs of its processes while these go on writing."""

import sys
from pathlib import Path

from cronq.dev.child import Child
from tests.support.processes import wait_for


def test_a_log_that_is_too_large_begins_anew_and_its_process_goes_on_writing(tmp_path: Path) -> None:
    log, more = tmp_path / "talker.log", tmp_path / "more"
    program = (
        "import pathlib, sys, time\n"
        "print('x' * 1000, flush=True)\n"
        f"while not pathlib.Path({str(more)!r}).exists(): time.sleep(0.01)\n"
        "print('after', flush=True)\n"
    )
    child = Child("talker", [sys.executable, "-c", program], env={}, log=log)
    try:
        wait_for(lambda: log.stat().st_size > 1000, 20, "the first line")
        child.trim_log(5000)
        assert not (tmp_path / "talker.log.1").exists()
        child.trim_log(500)
        assert (tmp_path / "talker.log.1").read_text() == "x" * 1000 + "\n"
        assert log.read_text() == ""
        more.touch()
        assert child.wait(20)
        assert log.read_text() == "after\n"
    finally:
        child.kill()
