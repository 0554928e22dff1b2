"""What the kernel says of its own kills."""

from __future__ import annotations

import pytest

from playhead.fit.probing.host_kills import host_kills


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_kills_of_the_machine_and_of_a_group_are_added(tmp_path):
    write(tmp_path, "proc/vmstat", "pgfault 7\noom_kill 3\noom_killer 9\n")
    assert host_kills(tmp_path) == 3
    write(tmp_path, "proc/self/cgroup", "0::/job/step\n")
    write(tmp_path, "sys/fs/cgroup/job/step/memory.events", "oom 4\noom_kill 2\n")
    assert host_kills(tmp_path) == 5


def test_groups_of_the_first_version_are_read(tmp_path):
    write(tmp_path, "proc/self/cgroup", "5:cpu,memory:/job\n4:devices:/\n0::/\n")
    write(tmp_path, "sys/fs/cgroup/memory/job/memory.oom_control", "under_oom 0\noom_kill 4\n")
    assert host_kills(tmp_path) == 4


def test_a_kernel_that_tells_nothing_is_no_zero(tmp_path):
    assert host_kills(tmp_path) is None
    write(tmp_path, "proc/vmstat", "pgfault 7\n")
    assert host_kills(tmp_path) is None


def test_this_machine_is_asked():
    kills = host_kills()
    if kills is None:
        pytest.skip("this kernel does not tell")
    assert kills >= 0
