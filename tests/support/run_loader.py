"""A training job without the training: takes batches, writes down what they were, saves its state.

`python run_loader.py SPEC.json` runs one; without an argument it reads one JSON command a line from
standard input and forks a process for each job, which spares every job the seconds that importing
torch and Lhotse costs, and what a module costs that it is told to import. A job is killed by its
own process id.

A spec holds: `config`, `overrides`, `ranks` (those that this process plays), `world_size`, `steps`
(the step to stop at; None is the end of a finite pass), `state_in`, `state_out`, `out` (JSON lines)
and `log`. It may hold: `dataset` (`default`, `ids`, `augmented`), `notes` (`ignore` for jobs that
change what they do), `environment`, `rendezvous`: a file where this process and others, one a
rank, meet in a gloo process group, `in_step`: they wait for each other after every step, as in
training, and `builders`: a file where jobs that build packs say so, the
first of which waits to be killed. Or it holds `train`, a spec of `train_torch`, or `script`, the
path of a program and its arguments, and `log`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import runpy
import signal
import sys
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from lhotse.dataset.collation import collate_audio
from lhotse.dataset.cut_transforms import PerturbSpeed, PerturbVolume

if TYPE_CHECKING:
    from lhotse import CutSet


class AugmentedSpeech(torch.utils.data.Dataset):
    """A dataset as Lhotse users write them, with randomness of every kind that they use."""

    def __init__(self) -> None:
        self.transforms = [
            PerturbSpeed(factors=[0.9, 1.1], p=0.6),
            PerturbVolume(p=0.5, scale_low=0.5, scale_high=2.0),
        ]

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        for transform in self.transforms:
            cuts = transform(cuts)
        audio, lengths = collate_audio(cuts)
        audio = audio + 1e-4 * torch.randn_like(audio)
        audio = audio + torch.from_numpy(np.random.uniform(-1e-4, 1e-4, audio.shape)).float()
        audio = audio * random.uniform(0.9, 1.1)
        return {"audio": audio, "audio_lens": lengths, "ids": [cut.id for cut in cuts]}


def dataset_of(name: str) -> Any:
    if name == "default":
        return None
    if name == "augmented":
        return AugmentedSpeech()
    assert name == "ids"
    from playhead.datasets import Ids

    return Ids()


def digest_of(batch: dict[str, Any]) -> str:
    """SHA-256 of the bytes, shapes and types of every tensor of a batch."""
    digest = hashlib.sha256()
    for name in sorted(batch):
        value = batch[name]
        if isinstance(value, torch.Tensor):
            digest.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
            digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def line_of(batch: dict[str, Any]) -> dict[str, Any]:
    info = batch["playhead"]
    return {
        "step": int(info.step),
        "slot": int(info.slot),
        "ids": list(batch["ids"]),
        "repeated": [bool(flag) for flag in info.repeated],
        "sha256": digest_of(batch),
    }


def write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def run(spec: dict[str, Any]) -> None:
    """Play the ranks of one process in turn, a whole step each, until the last step."""
    import playhead

    os.environ.update(spec.get("environment", {}))
    if "builders" in spec:
        from support.builders import hold_the_first_builder

        hold_the_first_builder(Path(spec["builders"]))
    if "mesh" in spec:
        from support.mesh_trainer import train

        train(spec)
        return
    places = [{"rank": rank, "world_size": spec["world_size"]} for rank in spec["ranks"]]
    if "rendezvous" in spec:
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{spec['rendezvous']}",
            timeout=timedelta(seconds=30),
            **places[0],
        )
        places = [{}]
    loaders = [
        playhead.dataloader(
            spec["config"],
            dataset=dataset_of(spec.get("dataset", "default")),
            **place,
            **spec.get("overrides", {}),
        )
        for place in places
    ]
    if spec.get("state_in"):
        for loader in loaders:
            loader.load_state_dict(json.loads(Path(spec["state_in"]).read_text()))
    out = os.open(spec["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    iterators = [iter(loader) for loader in loaders]
    step = loaders[0].state_dict()["step"]
    while spec.get("steps") is None or step < spec["steps"]:
        ended = 0
        for loader, iterator in zip(loaders, iterators, strict=True):
            for turn in range(loader.batches_per_step):
                batch = next(iterator, None)
                if batch is None:
                    assert turn == 0, "a pass ended inside a step"
                    ended += 1
                    break
                os.write(out, (json.dumps(line_of(batch)) + "\n").encode())
                os.fsync(out)
        if ended:
            assert ended == len(loaders), "ranks ended at different steps"
            return
        states = [json.dumps(loader.state_dict()) for loader in loaders]
        assert len(set(states)) == 1, "ranks have different states"
        step = json.loads(states[0])["step"]
        write_atomically(Path(spec["state_out"]), states[0])
        if spec.get("in_step"):
            torch.distributed.barrier()


def play(spec: dict[str, Any]) -> int:
    """Run in this process with its output in the log; the exit status."""
    log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    warnings.simplefilter(spec.get("notes", "error"), UserWarning)
    try:
        if "train" in spec:
            from support.train_torch import train

            train(spec["train"])
        elif "script" in spec:
            os.environ.update(spec.get("environment", {}))
            sys.argv = spec["script"]
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            run(spec)
    except BaseException:  # noqa: BLE001  (a job ends with a status and a log, whatever happened)
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0


def serve() -> None:
    """Fork a process for every spec; answer how it ended when asked."""
    children: set[int] = set()
    for line in sys.stdin:
        command = json.loads(line)
        if "stop" in command:
            break
        if "wait" in command:
            answer = {"status": wait_for(command["wait"], command["timeout"])}
            if answer["status"] is not None:
                children.discard(command["wait"])
        elif "import" in command:
            importlib.import_module(command["import"])
            answer = {}
        else:
            if command.keys() & {"train", "script"}:
                import_once()
            pid = os.fork()
            if pid == 0:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os._exit(play(command))
            children.add(pid)
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    # To take down all that was imported takes seconds, and there is nothing to save.
    os._exit(0)


def import_once() -> None:
    """What programs that train import, before they are forked."""
    # Every optimizer imports the first.
    for module in ("torch._dynamo", "playhead.loader.dataloader", "support.train_torch"):
        importlib.import_module(module)


def wait_for(pid: int, seconds: float) -> int | None:
    """The exit status of a child, negative for a signal; None when it still runs."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(play(json.loads(Path(sys.argv[1]).read_text())))
    serve()
