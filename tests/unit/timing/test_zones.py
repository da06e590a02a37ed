import struct

import pytest

from cronq.timing.errors import InvalidTiming
from cronq.timing.zones import FAR, zone
from tests.unit.timing import sweep, truth


def explicit_transitions(name: str) -> list[tuple[int, int]]:
    """The (UTC second, offset after it) pairs that the zone's file spells out (RFC 8536, version 2 data)."""
    data = truth.zone_bytes(name)

    def counts(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    isutc, isstd, leap, times, types, chars = counts(0)
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isutc
    _, _, _, times, types, _ = counts(second)
    at = second + 44
    instants = struct.unpack(f">{times}q", data[at : at + times * 8])
    kinds = data[at + times * 8 : at + times * 9]
    infos = at + times * 9
    offsets = [struct.unpack(">l", data[infos + 6 * k : infos + 6 * k + 4])[0] for k in range(types)]
    return [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]


def test_every_offset_change_that_the_zone_files_spell_out_is_found() -> None:
    checked = 0
    for name in sweep.distinct_zones()[::3]:
        before = None
        for instant, offset in explicit_transitions(name):
            if instant >= 0 and before is not None and offset != before:
                after, earlier = zone(name).stretch(instant), zone(name).stretch(instant - 1)
                assert (after.start, after.offset, earlier.offset) == (instant, offset, before), (
                    name,
                    instant,
                )
                checked += 1
            before = offset
    assert checked > 2000


def test_stretches_join_without_a_hole() -> None:
    there, instant = zone("Africa/Casablanca"), 0
    while instant < 2_000_000_000:
        stretch = there.stretch(instant)
        assert instant in {stretch.start, 0}
        instant = stretch.end


def test_utc_is_one_stretch() -> None:
    assert zone("UTC").stretch(0).end == FAR


def test_an_unknown_zone_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidTiming, match=r"did you mean Europe/Paris\?"):
        zone("europe/pariss")
    for name in ("../../etc/passwd", "", "Europe", "posixrules"):
        with pytest.raises(InvalidTiming):
            zone(name)
