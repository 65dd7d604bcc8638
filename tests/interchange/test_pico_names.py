"""What PICO calls algorithms: our name where messages are the same, and which of them a library ignored."""

import pytest

from commodel.interchange.pico import following_default, our_name


@pytest.mark.parametrize(
    ("collective", "called", "ranks", "elements", "ours"),
    [
        ("allgather", "k_bruck_over", 6, 60, "bruck"),
        ("allgather", "k_bruck_ompi", 6, 60, "k_bruck_ompi"),
        ("allreduce", "rabenseifner_mpich", 8, 80, "rabenseifner"),
        ("allreduce", "rabenseifner_mpich", 6, 60, "rabenseifner_mpich"),
        ("alltoall", "pairwise_mpich", 8, 80, "pairwise_mpich"),
        ("alltoall", "pairwise_mpich", 6, 60, "pairwise"),
        ("allreduce", "ring_ompi", 8, 80, "ring"),
        ("allreduce", "ring_ompi", 8, 4, "ring_ompi"),
        ("allreduce", "ring_over", 8, 4, "ring"),
        ("alltoall", "linear_sync_ompi", 8, 80, "linear"),
        ("gather", "default_craympich", 8, 80, "library"),
    ],
)
def test_names_are_mapped_where_messages_are_the_same(collective, called, ranks, elements, ours):
    assert our_name(collective, called, ranks, elements) == ours


SIZES = [8 * 8**power for power in range(7)]


def measured(**factors):
    return {name: {size: factor * (1 + size) for size in SIZES} for name, factor in factors.items()}


def test_a_library_that_does_as_it_likes_is_found_by_its_times():
    equal = measured(default_ompi=1, ring_ompi=1.01, rabenseifner_ompi=0.98, recursive_doubling_ompi=2)
    followers = {"ring_ompi": "default_ompi", "rabenseifner_ompi": "default_ompi"}
    assert following_default("allreduce", equal) == followers
    equal["ring_ompi"][SIZES[2]] *= 3  # a hiccup
    assert following_default("allreduce", equal) == followers
    equal["ring_ompi"][SIZES[3]] *= 3
    assert not following_default("allreduce", equal)  # one may be what the library chooses
    assert not following_default("gather", measured(default_ompi=1, binomial_ompi=1, binomial_over=1))
    alike = measured(default_mpich=1, recursive_doubling_mpich=1)
    assert following_default("allreduce", alike) == {"recursive_doubling_mpich": "default_mpich"}
    few = {name: {size: times[size] for size in SIZES[:3]} for name, times in alike.items()}
    assert not following_default("allreduce", few)
    assert not following_default("alltoall", measured(default_ompi=1, linear_ompi=1, linear_sync_ompi=1))
