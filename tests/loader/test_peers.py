"""Which processes share their batches: arithmetic over meshes and groups."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from playhead.errors import ConfigError
from playhead.loader.peers import find_peers, peers_of_groups, peers_of_mesh
from playhead.loader.ranks import find_topology


def mesh_of(shape, names=None, order=None):
    ranks = np.arange(math.prod(shape)) if order is None else np.array(order)
    return SimpleNamespace(mesh=ranks.reshape(shape), mesh_dim_names=names)


@pytest.fixture
def place():
    """Makes this process a rank of a job whose other processes do not exist."""

    def join(rank, world_size):
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)

    yield join
    if dist.is_initialized():
        dist.destroy_process_group()


DATA = ["dp", "dp_replicate", "dp_shard", "fsdp", "data_parallel", "batch", "replicate", "shard"]
SHARED = ["tp", "pp", "cp", "ep", "sp", "tensor_parallel", "model_parallel"]


@st.composite
def meshes(draw):
    names = draw(
        st.lists(st.sampled_from(DATA + SHARED), min_size=1, max_size=4, unique=True).map(tuple)
    )
    shape = draw(st.tuples(*[st.integers(1, 4) for _ in names]))
    return mesh_of(shape, names, draw(st.permutations(range(math.prod(shape)))))


@given(meshes())
def test_peers_are_those_with_the_same_data_parallel_coordinates(mesh):
    data = [dim for dim, name in enumerate(mesh.mesh_dim_names) if name in DATA]
    at = {
        int(mesh.mesh[coordinate]): coordinate
        for coordinate in itertools.product(*map(range, mesh.mesh.shape))
    }
    peers = peers_of_mesh(mesh)
    assert sorted(rank for group in peers for rank in group) == list(range(mesh.mesh.size))
    rank_of = {rank: number for number, group in enumerate(peers) for rank in group}
    shape = [mesh.mesh.shape[dim] for dim in data]
    for rank, coordinate in at.items():
        # Row-major over the data-parallel dimensions.
        along = [coordinate[dim] for dim in data]
        assert rank_of[rank] == (np.ravel_multi_index(along, shape) if data else 0)
    for group in peers:
        first = at[group[0]]
        assert all(first[dim] == 0 for dim in range(len(first)) if dim not in data)


@given(meshes())
def test_dimensions_given_by_name_or_number_are_those_known_by_name(mesh):
    data = [name for name in mesh.mesh_dim_names if name in DATA]
    numbers = [mesh.mesh_dim_names.index(name) for name in data]
    without_names = mesh_of(mesh.mesh.shape, None, mesh.mesh.reshape(-1))
    assert peers_of_mesh(mesh, data) == peers_of_mesh(mesh)
    assert peers_of_mesh(mesh, [*reversed(numbers)]) == peers_of_mesh(mesh)
    assert peers_of_mesh(without_names, numbers) == peers_of_mesh(mesh)
    assert peers_of_mesh(without_names, [n - mesh.mesh.ndim for n in numbers]) == peers_of_mesh(
        mesh
    )


@settings(max_examples=30, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    names=st.permutations(["dp_replicate", "dp_shard", "tp"]),
    data=st.data(),
)
def test_a_real_mesh_gives_each_process_the_place_that_torch_does(shape, names, data):
    size = math.prod(shape)
    me = data.draw(st.integers(0, size - 1))
    dist.init_process_group("fake", store=FakeStore(), rank=me, world_size=size)
    try:
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple(names))
        place = find_topology(peers=find_peers(mesh, None, broadcast=False))
        order = [name for name in names if name != "tp"]
        outer, inner = (mesh[name] for name in order)
        assert place.world_size == outer.size() * inner.size()
        assert place.rank == outer.get_local_rank() * inner.size() + inner.get_local_rank()
        tensor_parallel = mesh["tp"]
        if tensor_parallel.size() > 1:
            assert place.peers == tuple(tensor_parallel.mesh.tolist())
            assert place.is_first == (tensor_parallel.get_local_rank() == 0)
        else:
            assert place.peers == ()
            assert place.is_first
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("shape", [(4,), (1,)])
def test_one_dimension_without_a_name_is_data_parallel(shape):
    assert peers_of_mesh(mesh_of(shape)) == tuple((rank,) for rank in range(shape[0]))


def test_more_dimensions_without_names_have_to_be_told():
    with pytest.raises(ConfigError, match=r"2 dimensions of the mesh have no names.*dp_dims=\[0\]"):
        peers_of_mesh(mesh_of((2, 2)))


@pytest.mark.parametrize("name", ["dp_cp", "dp_shard_cp", "efsdp", "ep_shard", "world", "x"])
def test_a_name_that_may_mean_either_is_an_error_that_names_the_way_out(name):
    with pytest.raises(ConfigError, match=rf"{name}.*\(mesh of {name}, tp\).*dp_dims=\['{name}'\]"):
        peers_of_mesh(mesh_of((2, 2), (name, "tp")))
    assert peers_of_mesh(mesh_of((2, 2), (name, "tp")), name) == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("names", "dim", "fix"),
    [
        (("dp", "tp"), "pp", "Use some of dp, tp"),
        (None, 2, "Use numbers below 2"),
        (None, 1.0, "Use numbers below 2"),
        (None, None, "Use numbers below 2"),
    ],
)
def test_a_dimension_that_does_not_exist_is_named(names, dim, fix):
    with pytest.raises(ConfigError, match=rf"names {dim!r}, and .* no such dimension\. {fix}"):
        peers_of_mesh(mesh_of((2, 2), names), [dim])


def test_a_single_dimension_may_be_given_by_its_number():
    assert peers_of_mesh(mesh_of((2, 2), None), 1) == ((0, 2), (1, 3))


def test_a_part_of_a_mesh_is_refused_with_both_ways_out(place):
    place(5, 8)
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    with pytest.raises(
        ConfigError, match=r"holds 2 of 8 processes.*\(mesh of dp=2\).*whole mesh.*rank and world_"
    ):
        find_peers(mesh["dp"], None, broadcast=False)


def test_a_flattened_mesh_is_as_good_as_its_parts(place):
    place(2, 4)
    mesh = DeviceMesh("cpu", [0, 1, 2, 3], mesh_dim_names=("dp",))
    topology = find_topology(peers=find_peers(mesh, None, broadcast=False))
    assert (topology.rank, topology.world_size, topology.peers) == (2, 4, ())


def test_arguments_win_over_the_mesh_and_the_mesh_over_the_process_group(place):
    place(3, 4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    peers = find_peers(mesh, None, broadcast=False)
    by_hand, by_mesh, alone = (
        find_topology(5, 6, peers),
        find_topology(peers=peers),
        find_topology(),
    )
    assert (by_hand.rank, by_hand.world_size, by_hand.peers) == (5, 6, (2, 3))
    assert (by_mesh.rank, by_mesh.world_size) == (1, 2)
    assert (alone.rank, alone.world_size) == (3, 4)


def test_ranks_given_by_hand_need_no_mesh(place):
    place(6, 8)
    topology = find_topology(3, 4, find_peers(None, None, broadcast=False))
    assert (topology.rank, topology.world_size, topology.peers) == (3, 4, ())


def test_who_speaks_is_one_process():
    world = [find_speaker(rank) for rank in range(8)]
    assert world == [True] + [False] * 7


def find_speaker(rank):
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=8)
    try:
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        return find_topology(peers=find_peers(mesh, None, broadcast=False)).is_speaker
    finally:
        dist.destroy_process_group()


def test_groups_make_the_ranks_in_the_order_of_their_first():
    assert peers_of_groups([[0, 4], [1, 5], [2], [3], [4, 0], [5, 1]]) == (
        (0, 4),
        (1, 5),
        (2,),
        (3,),
    )


def test_groups_that_contradict_each_other_name_two_ranks():
    with pytest.raises(ConfigError, match=r"Rank 0 .* \[0, 1\], and rank 1 with \[1\]"):
        peers_of_groups([[0, 1], [1]])


def test_what_does_not_fit_together_is_refused(place):
    place(0, 4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    with pytest.raises(ConfigError, match="no mesh is given"):
        find_peers(None, ["dp"], broadcast=False)
    with pytest.raises(ConfigError, match="nothing says which processes share"):
        find_peers(None, None, broadcast=True)
    with pytest.raises(ConfigError, match="so does the group in broadcast"):
        find_peers(mesh, None, broadcast=mesh.get_group("tp"))
    for none in (None, dist.GroupMember.NON_GROUP_MEMBER, "tp"):
        with pytest.raises(ConfigError, match=r"Broadcast is .*the process group of those"):
            find_peers(None, None, broadcast=none)
