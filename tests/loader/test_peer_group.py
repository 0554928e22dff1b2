"""Process groups of processes that share their batches: which are made, and what they carry."""

from __future__ import annotations

import pickle
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from playhead.errors import WorkerError
from playhead.loader.peer_group import PeerGroup, open_peer_group

PEERS = ((0, 2), (1, 3))


@pytest.fixture
def world():
    """This process is rank 2 of four, of which the others do not exist."""
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield
    dist.destroy_process_group()


@pytest.fixture
def made(world, monkeypatch):
    """Notes the groups that are made."""
    groups = []
    new_group = dist.new_group

    def note(ranks, *, backend, timeout):
        groups.append((ranks, backend, timeout))
        return new_group(ranks, backend="fake")

    monkeypatch.setattr(dist, "new_group", note)
    return groups


@pytest.mark.parametrize(
    ("config", "backend"),
    [
        ("cpu:gloo,cuda:gloo", "gloo"),
        ("cuda:nccl", "cpu:gloo,cuda:nccl"),
        ("cpu:gloo,cuda:nccl", "cpu:gloo,cuda:nccl"),
    ],
)
def test_every_process_makes_all_groups_with_a_backend_for_cpu_tensors(
    made, monkeypatch, config, backend
):
    monkeypatch.setattr(dist, "get_backend_config", lambda: config)
    group = open_peer_group(PEERS)
    assert [(ranks, used) for ranks, used, _ in made] == [([0, 2], backend), ([1, 3], backend)]
    assert (group.first, group.is_first) == (0, False)


def test_loaders_of_one_job_share_their_groups(made):
    assert open_peer_group(PEERS) is open_peer_group(PEERS)
    assert len(made) == 2


def test_another_job_of_this_process_has_groups_of_its_own(made):
    first = open_peer_group(PEERS)
    dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    assert open_peer_group(PEERS) is not first
    assert len(made) == 4


def test_a_process_without_peers_has_no_group(made):
    assert open_peer_group(((0, 1), (2,), (3,))) is None
    assert [ranks for ranks, _, _ in made] == [[0, 1]]


def test_the_deadline_is_that_of_the_process_group(monkeypatch):
    deadlines = []
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=77)
    )
    try:
        monkeypatch.setattr(dist, "new_group", lambda *_, timeout, **__: deadlines.append(timeout))
        open_peer_group(((0, 0),))
    finally:
        dist.destroy_process_group()
    assert deadlines == [timedelta(seconds=77)]


def test_each_tensor_is_sent_where_it_lies_and_empty_ones_are_not_sent(world, monkeypatch):
    sent = []
    monkeypatch.setattr(dist, "broadcast", lambda tensor, **options: sent.append((tensor, options)))
    audio = torch.ones(2, 3)
    group = PeerGroup(dist.group.WORLD, (2, 3), timedelta(seconds=5))
    group.send({"audio": audio, "none": torch.ones(0, 4), "there": torch.ones(3, device="meta")})
    assert all(options["src"] == 2 for _, options in sent)
    contents = [tensor for tensor, _ in sent[2:]]
    assert [(content.device.type, content.numel()) for content in contents] == [
        ("cpu", 24),
        ("meta", 12),
    ]
    assert contents[0].data_ptr() == audio.data_ptr()


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ((2, 3), r"Rank 2 could not send a batch to ranks 3: gone\. .*for 5 s, the timeout of"),
        ((0, 2), r"No batch came from rank 0, which reads for rank 2: gone\. .*for 5 s"),
    ],
)
def test_a_peer_that_is_gone_is_named_on_either_side(world, monkeypatch, ranks, said):
    def gone(*_, **__):
        raise RuntimeError("gone\nand more")

    monkeypatch.setattr(dist, "broadcast", gone)
    group = PeerGroup(dist.group.WORLD, ranks, timedelta(seconds=5))
    with pytest.raises(WorkerError, match=said):
        group.send(1) if group.is_first else group.receive()


@pytest.mark.parametrize(("ranks", "whole"), [((2, 3), 3), ((0, 2), 1)])
@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError, TimeoutError])
def test_after_a_part_of_a_value_nothing_more_is_said_or_heard(
    world, monkeypatch, ranks, whole, reason
):
    begun = []

    def interrupted(tensor, **_):
        begun.append(tensor)
        if len(begun) == whole:
            raise reason

    monkeypatch.setattr(dist, "broadcast", interrupted)
    group = PeerGroup(dist.group.WORLD, ranks, timedelta(seconds=5))
    exchange = (lambda: group.send(torch.ones(3))) if group.is_first else group.receive
    with pytest.raises((reason, WorkerError)):
        exchange()
    for _ in range(2):
        with pytest.raises(WorkerError, match=f"Ranks {ranks[0]}, {ranks[1]} cannot share batches"):
            exchange()
    assert len(begun) == whole


def test_what_cannot_be_pickled_does_not_keep_others_from_being_sent(world, monkeypatch):
    sent = []
    monkeypatch.setattr(dist, "broadcast", lambda tensor, **_: sent.append(tensor))
    group = PeerGroup(dist.group.WORLD, (2, 3), timedelta(seconds=5))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        group.send(lambda: 0)
    assert not sent
    group.send(1)
    assert len(sent) == 2


def test_threads_say_one_value_after_the_other(world, monkeypatch):
    spoken = []

    def slow(tensor, **_):
        spoken.append(threading.get_ident())
        time.sleep(0.001)

    monkeypatch.setattr(dist, "broadcast", slow)
    group = PeerGroup(dist.group.WORLD, (2, 3), timedelta(seconds=5))

    def say():
        for _ in range(10):
            group.send(torch.ones(3))

    others = [threading.Thread(target=say) for _ in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len(spoken) == 90
    assert all(len(set(spoken[at : at + 3])) == 1 for at in range(0, 90, 3))
