"""Nodes that see other data than most are named; nobody waits for ever for one that is gone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from playhead.check.preflight.exchange import find_exchange, find_node
from playhead.check.preflight.nodes import ends_of_leaves, unlike
from playhead.errors import ConfigError
from support.corpus import tarred_corpus

SRUN = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "0"}


@pytest.mark.parametrize(
    ("environment", "number", "nodes", "speaks"),
    [
        ({}, 0, 1, True),
        ({**SRUN, "SLURM_NODEID": "2", "SLURM_STEP_NUM_NODES": "3"}, 2, 3, True),
        ({**SRUN, "SLURM_LOCALID": "1", "SLURM_NNODES": "3"}, 0, 3, False),
        ({"LOCAL_RANK": "0", "RANK": "8", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 1, 2, True),
        ({"LOCAL_RANK": "3", "RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}, 0, 1, False),
        # torchrun on top of srun: the inner launcher counts.
        (
            {
                **SRUN,
                "SLURM_NNODES": "2",
                "LOCAL_RANK": "0",
                "RANK": "4",
                "WORLD_SIZE": "8",
                "LOCAL_WORLD_SIZE": "4",
                "GROUP_RANK": "1",
            },
            1,
            2,
            True,
        ),
    ],
)
def test_where_a_process_is(environment, number, nodes, speaks):
    node = find_node(environment)
    assert (node.number, node.nodes, node.speaks) == (number, nodes, speaks)


def test_what_is_no_number_is_named():
    with pytest.raises(ConfigError, match="SLURM_NODEID is 'x'"):
        find_node({"SLURM_NODEID": "x"})


def test_runs_have_names_that_can_be_files():
    assert find_node({"TORCHELASTIC_RUN_ID": "a/b c", "MASTER_PORT": "12"}).run == "a_b_c-12"


def said_by(folder, names, deadline=20.0):
    """What each of some nodes, one a thread, hears of the others."""
    heard = {}

    def talk(number, name):
        environment = {
            **SRUN,
            "SLURM_NODEID": str(number),
            "SLURM_NNODES": str(len(names)),
            "SLURMD_NODENAME": name,
        }
        with find_exchange(find_node(environment), str(folder), environment, deadline) as exchange:
            heard[number] = [exchange.gather(about, [number]) for about in ("one", "two")]

    threads = [
        threading.Thread(target=talk, args=pair)
        for pair in enumerate(names)
        if not pair[1].startswith("gone")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heard


def test_a_folder_hands_round_what_each_says(tmp_path):
    heard = said_by(tmp_path, ["a", "b", "c"])
    assert heard == {number: [{"a": [0], "b": [1], "c": [2]}] * 2 for number in range(3)}


def test_names_that_are_the_same_are_told_apart(tmp_path):
    assert list(said_by(tmp_path, ["a", "a"])[0][0]) == ["a", "a (node 1)"]


def test_a_node_that_never_comes_is_waited_for_no_longer_than_the_deadline(tmp_path):
    begin = time.monotonic()
    heard = said_by(tmp_path, ["a", "gone"], deadline=0.3)
    assert heard[0] == [{"a": [0], "node 1": None}] * 2
    assert time.monotonic() - begin < 10


def test_what_an_older_run_left_is_not_taken_for_this_one(tmp_path):
    said_by(tmp_path, ["a", "b"])
    old = tmp_path / "playhead-check-7-0" / "node-1.json"
    assert json.loads(old.read_text())["said"] == {"one": [1], "two": [1]}
    assert said_by(tmp_path, ["a", "gone"], deadline=0.3)[0][0] == {"a": [0], "node 1": None}
    assert said_by(tmp_path, ["a", "c"])[0] == [{"a": [0], "c": [1]}] * 2


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    environment = {**SRUN, "SLURM_NNODES": "2"}
    with (
        pytest.raises(ConfigError, match=r"cannot be used.*--exchange .*file"),
        find_exchange(find_node(environment), str(tmp_path / "file"), environment),
    ):
        pass


def test_without_a_way_to_hear_of_others_nothing_is_compared():
    environment = {**SRUN, "SLURM_NNODES": "2"}
    with find_exchange(find_node(environment), None, environment) as exchange:
        assert exchange is None


def test_ends_of_leaves_see_the_first_and_last_kib_of_the_first_and_last_file(subject_of, place):
    manifests, tars = tarred_corpus(place / "d", [0.2 + 0.01 * n for n in range(9)], 3)
    entry = {"type": "nemo_tarred", "manifest_filepath": manifests, "tarred_audio_filepaths": tars}
    subject = subject_of({"batch_size": 4, "input_cfg": [entry]})
    before = ends_of_leaves(subject)
    assert len(before) == 4

    def changed(name, at):
        path = place / "d" / name
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)
        after = ends_of_leaves(subject)
        content[at] ^= 1
        path.write_bytes(content)
        return [key for key in before if before[key] != after[key]]

    assert changed("audio_0.tar", 1000) == ["0 nemo_tarred tar first"]
    assert changed("audio_2.tar", -1) == ["0 nemo_tarred tar last"]
    assert changed("manifest_2.json", 3) == ["0 nemo_tarred manifest last"]
    assert changed("audio_1.tar", 0) == []
    assert changed("audio_0.tar", 5000) == []
    (place / "d" / "audio_2.tar").unlink()
    assert ends_of_leaves(subject)["0 nemo_tarred tar last"][1] == "The file does not exist"


def test_most_nodes_are_believed():
    facts = {"x": ["/x", "1"], "y": ["/y", "1"]}
    other = {"x": ["/x", "2"], "y": ["/y", "3"]}
    assert unlike({"a": facts, "b": facts}) == []
    assert unlike({"a": other, "b": facts, "c": facts}) == [("a", 2, 2, "/x: 2, and 1 on b")]
    assert unlike({"a": facts, "b": other}) == [("b", 2, 2, "/x: 2, and 1 on a")]
    [(host, count, total, _)] = unlike({"a": facts, "b": {"x": ["/x", "1"]}})
    assert (host, count, total) == ("b", 1, 2)


# Real processes, each with data of its own, under the variables of a launcher.


@pytest.fixture
def nodes(tmp_path):
    """Folders `node0` … with a copy of the data each, and the config that names them."""
    for number in range(3):
        tarred_corpus(tmp_path / f"node{number}", [0.2 + 0.01 * n for n in range(9)], 3)
    entry = {
        "type": "nemo_tarred",
        "manifest_filepath": "${oc.env:NODE_DATA}/manifest__OP_0..2_CL_.json",
        "tarred_audio_filepaths": "${oc.env:NODE_DATA}/audio__OP_0..2_CL_.tar",
        "name": "speech",
    }
    config = {"batch_size": 4, "num_workers": 1, "input_cfg": [entry]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def started(folder, number, *arguments, **environment):
    """One process of a job, on the node of that number."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    return subprocess.Popen(
        [sys.executable, "-m", "playhead", "check", "config.yaml", *arguments],
        cwd=folder,
        env={
            **given,
            "NODE_DATA": str(folder / f"node{number}"),
            "PLAYHEAD_CACHE": str(folder / f"cache{number}"),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(processes):
    """Exit code, output and errors of each."""
    results = []
    for process in processes:
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        assert "Traceback" not in err, err
        results.append((process.returncode, out, err))
    return results


def spoilt(path):
    content = bytearray(Path(path).read_bytes())
    content[-1] ^= 1
    Path(path).write_bytes(content)


def under_srun(folder, count, *arguments):
    return ended(
        [
            started(
                *(folder, number, "--exchange", "exchange", *arguments),
                **SRUN,
                SLURM_NODEID=str(number),
                SLURM_STEP_NUM_NODES=str(count),
                SLURMD_NODENAME=f"host-{number}",
            )
            for number in range(count)
        ]
    )


@pytest.mark.e2e
def test_under_srun_nodes_that_differ_are_named(nodes):
    spoilt(nodes / "node1" / "audio_2.tar")
    (nodes / "node2" / "audio_1.tar").unlink()
    (code, out, err), *others = under_srun(nodes, 3, "--json")
    assert others == [(0, "", "")] * 2
    assert (code, err) == (1, "")
    report = json.loads(out)
    assert report["hosts"] == ["host-0", "host-1", "host-2"]
    failures = {(one["rule"], *one["hosts"]): one for one in report["findings"]
                if one["severity"] == "fail"}  # fmt: skip
    assert set(failures) == {("nodes-differ",), ("source-missing", "host-2")}
    assert failures["nodes-differ",]["where"] == "host-1"
    assert "1 of 4 files" in failures["nodes-differ",]["saw"]
    assert "audio_2.tar: " in failures["nodes-differ",]["saw"]
    assert "audio_1.tar" in failures["source-missing", "host-2"]["saw"]


@pytest.mark.slow
@pytest.mark.e2e
def test_under_srun_nodes_that_are_alike_pass(nodes):
    (code, out, err), other = under_srun(nodes, 2)
    assert (code, err) == (0, "")
    assert other == (0, "", "")
    assert ", 2 nodes: host-0, host-1\n" in out
    assert "\nReady: 0 failures" in out


@pytest.mark.e2e
def test_under_torchrun_nodes_that_differ_are_named(nodes):
    """Two nodes of two processes: one of each looks, one of all speaks."""
    spoilt(nodes / "node1" / "manifest_0.json")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = [
        started(
            *(nodes, number),
            RANK=str(2 * number + local),
            LOCAL_RANK=str(local),
            GROUP_RANK=str(number),
            WORLD_SIZE="4",
            LOCAL_WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
            GLOO_SOCKET_IFNAME="lo",
        )
        for number in range(2)
        for local in range(2)
    ]
    (code, out, _), *others = ended(processes)
    assert code == 1
    assert [(code, out) for code, out, _ in others] == [(0, "")] * 3
    assert "nodes-differ" in out
    assert "(node 1) sees 1 of 4 files in another way than most: " in out


@pytest.mark.slow
@pytest.mark.e2e
def test_processes_that_never_come_are_an_error_within_the_deadline(tmp_path):
    code = (
        "import os\n"
        "from playhead.check.preflight.exchange import find_exchange, find_node\n"
        "with find_exchange(find_node(os.environ), None, os.environ, 2.0):\n"
        "    pass\n"
    )
    environment = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environment["MASTER_PORT"] = str(free.getsockname()[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "did not find each other" in done.stderr


@pytest.mark.slow
@pytest.mark.e2e
def test_a_wrong_config_is_an_error_on_every_node(nodes):
    (nodes / "config.yaml").write_text("[]")
    assert [code for code, _, _ in under_srun(nodes, 2)] == [2, 2]
