"""Every part of a shard is read in order and to its end, and reading can begin at any step."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.pretraining.reading_schedule import ReadingSchedule


@st.composite
def schedules(draw):
    num_parts, text_length = draw(st.integers(1, 5)), draw(st.integers(2, 12))
    needed = num_parts * text_length
    num_tokens = draw(st.lists(st.integers(1, 6 * needed), min_size=0, max_size=4))
    num_tokens.append(draw(st.integers(needed, 9 * needed)))
    reuse_length = draw(st.integers(1, text_length))
    arguments = dict(
        num_tokens=num_tokens,
        num_parts=num_parts,
        text_length=text_length,
        reuse_length=reuse_length,
        bidirectional_data=draw(st.booleans()),
        seed=draw(st.integers(0, 3)),
        directory="",
    )
    return ReadingSchedule(**arguments), arguments


def single_steps(shard_steps):
    """Yields (step, shard, step within the shard, begins) of every single step."""
    for steps in shard_steps:
        for position in range(steps.first, steps.stop):
            yield steps.step + position - steps.first, steps.shard, position, steps.begins


@settings(max_examples=60)
@given(schedules(), st.integers(0, 40))
def test_any_step_can_be_the_first(schedule, first_step):
    schedule, _ = schedule
    whole = list(itertools.islice(single_steps(schedule.shard_steps(0)), first_step + 5))
    part = list(itertools.islice(single_steps(schedule.shard_steps(first_step)), 5))
    assert [step for step, *_ in part] == list(range(first_step, first_step + 5))
    for one, other in zip(whole[first_step:], part, strict=True):
        assert one[:3] == other[:3]
        np.testing.assert_array_equal(one[3], other[3])


@settings(max_examples=60)
@given(schedules())
def test_a_pass_reads_every_long_shard_once(schedule):
    schedule, arguments = schedule
    one_pass = itertools.takewhile(
        lambda steps: steps.step < schedule.steps_per_pass, schedule.shard_steps(0)
    )
    one_pass = list(one_pass)
    shards = sorted(steps.shard for steps in one_pass)
    assert shards == sorted(set(range(len(arguments["num_tokens"]))) - set(schedule.unused_shards))
    for steps in one_pass:
        total, n = arguments["num_tokens"][steps.shard], arguments["num_parts"]
        text_length, reuse_length = arguments["text_length"], arguments["reuse_length"]
        ends = steps.begins + (steps.stop - 1) * reuse_length + text_length
        assert steps.begins.min() >= 0 and ends.max() <= total
        # No part is long enough for another step.
        assert total // n - (steps.stop * reuse_length + text_length) < 0
        assert (np.diff(steps.begins[0]) == total // n).all()
        if arguments["bidirectional_data"]:
            np.testing.assert_array_equal(steps.begins[1], total - ends[0])


def test_passes_differ():
    schedule = ReadingSchedule([1000] * 6, 2, 20, 10, False, seed=1, directory="")
    shards = [steps.shard for steps in itertools.islice(schedule.shard_steps(0), 12)]
    assert sorted(shards[:6]) == sorted(shards[6:]) == list(range(6))
    assert shards[:6] != shards[6:]
    # Each part has 500 >= 20 + 48 * 10 tokens.
    assert schedule.steps_per_pass == 6 * 49
