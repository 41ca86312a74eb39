"""Where streams stand: every stream goes on, none leaves its shard, and any step can be first."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.pretraining.stream_plan import StreamPlan


@st.composite
def plans(draw):
    num_streams, text_length = draw(st.integers(1, 5)), draw(st.integers(2, 12))
    needed = num_streams * text_length
    num_tokens = draw(st.lists(st.integers(1, 6 * needed), min_size=0, max_size=4))
    num_tokens.append(draw(st.integers(needed, 9 * needed)))
    reuse_length = draw(st.integers(1, text_length))
    arguments = dict(
        num_tokens=num_tokens,
        num_streams=num_streams,
        text_length=text_length,
        reuse_length=reuse_length,
        bidirectional_data=draw(st.booleans()),
        seed=draw(st.integers(0, 3)),
        directory="",
    )
    return StreamPlan(**arguments), arguments


def steps_of(visits):
    """Yields (step, shard, step of the shard, begins now), a step after the other."""
    for visit in visits:
        for position in range(visit.first, visit.stop):
            yield visit.step + position - visit.first, visit.shard, position, visit.begins


@settings(max_examples=60, deadline=None)
@given(plans(), st.integers(0, 40))
def test_any_step_can_be_the_first(plan, first_step):
    plan, _ = plan
    whole = list(itertools.islice(steps_of(plan.visits(0)), first_step + 5))
    part = list(itertools.islice(steps_of(plan.visits(first_step)), 5))
    assert [step for step, *_ in part] == list(range(first_step, first_step + 5))
    for one, other in zip(whole[first_step:], part, strict=True):
        assert one[:3] == other[:3]
        np.testing.assert_array_equal(one[3], other[3])


@settings(max_examples=60, deadline=None)
@given(plans())
def test_a_pass_visits_every_long_shard_once(plan):
    plan, arguments = plan
    visits = list(itertools.takewhile(lambda v: v.step < plan.steps_per_pass, plan.visits(0)))
    shards = sorted(visit.shard for visit in visits)
    assert shards == sorted(set(range(len(arguments["num_tokens"]))) - set(plan.unused_shards))
    for visit in visits:
        total, n = arguments["num_tokens"][visit.shard], arguments["num_streams"]
        text_length, reuse_length = arguments["text_length"], arguments["reuse_length"]
        ends = visit.begins + (visit.stop - 1) * reuse_length + text_length
        assert visit.begins.min() >= 0 and ends.max() <= total
        # No stream could take another step.
        assert total // n - (visit.stop * reuse_length + text_length) < 0
        assert (np.diff(visit.begins[0]) == total // n).all()
        if arguments["bidirectional_data"]:
            np.testing.assert_array_equal(visit.begins[1], total - ends[0])


def test_passes_differ():
    plan = StreamPlan([1000] * 6, 2, 20, 10, False, seed=1, directory="")
    shards = [visit.shard for visit in itertools.islice(plan.visits(0), 12)]
    assert sorted(shards[:6]) == sorted(shards[6:]) == list(range(6))
    assert shards[:6] != shards[6:]
    # 500 tokens a stream are 20 + 48 * 10.
    assert plan.steps_per_pass == 6 * 49
