from __future__ import annotations

from playhead.demo.ranks import Stage, run_stage

SAY = "import sys; open(sys.argv[2][6:], 'w').write(' '.join(sys.argv[1:2]))"


def test_a_stage_tells_every_rank_its_workers_and_its_log(tmp_path):
    stage = Stage(name="s", ranks=2, workers=3, kill_at=None)
    run_stage(stage, ["-c", SAY], tmp_path, lambda log: 0)
    assert [(tmp_path / f"s.{rank}.jsonl").read_text() for rank in range(2)] == ["--workers=3"] * 2


def test_a_stage_is_killed_at_its_step(tmp_path):
    stage = Stage(name="s", ranks=1, workers=0, kill_at=4)
    code = f"{SAY}; import time; time.sleep(60)"
    assert run_stage(stage, ["-c", code], tmp_path, lambda log: 4 * log.exists()) < 30
