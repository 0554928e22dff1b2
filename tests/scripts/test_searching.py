"""The scripts that search batch sizes, by the command lines of the guides."""

from __future__ import annotations

import re
import sys

import pytest

from playhead.fit import device as devices
from support.command import run_script
from support.fit_in_memory import write_model

ASR, SPEECHLM = "speech_recognition/oomptimizer.py", "speechlm2/oomptimizer.py"
OWN = ("--model", "fit_tiny:make", "--memory", "4GiB", "--device", "fake")
SHORT = ("-b", "[1,2]", "-t", 0.05, "-s", 32, "-r", 12, "-f", 0.9, "-y", "bfloat16", "--no-ddp")
LONG = (
    *("--buckets", "[1,2]", "--threshold", 0.05, "--start-batch-size", 32, "--ratio", 12),
    *("--memory-fraction", 0.9, "--dtype", "bfloat16", "--ddp"),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, write_model(tmp_path), raising=False)
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """What a search would be about, which ends before a device is opened."""
    asked = []

    def opened(source, bounds, training, *, device, **_):
        asked.append((source, list(bounds), training, device))
        raise KeyboardInterrupt

    monkeypatch.setattr(devices, "opened_device", opened)
    return asked


@pytest.mark.parametrize(
    ("script", "flags"), [(ASR, SHORT), (SPEECHLM, LONG)], ids=["speech_recognition", "speechlm2"]
)
def test_the_profile_is_printed_as_the_guide_shows_it(folder, script, flags):
    done = run_script(script, *flags, *OWN, cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    best = r"=> Optimal setting for bucket=2 \(input=2000 output=24\) is max_batch_size=(\d+)"
    size = int(re.fullmatch(best, lines[0])[1])
    assert lines[2] == "The 1st stage profile is:"
    assert lines[4] == f"bucket=2 (input=2000 output=24) => batch_size={size}"
    assert "Bucket merging stage..." in lines
    final = lines.index("The final profile is:")
    assert lines[final + 1] == "\tbucket_duration_bins=[1,2]"
    assert re.fullmatch(rf"\tbucket_batch_size=\[\d+,{size}\]", lines[final + 2])
    assert len(lines) == final + 3
    assert "OK!" in done.stderr


@pytest.mark.parametrize(("script", "flags"), [(ASR, LONG), (SPEECHLM, SHORT)])
def test_what_is_said_reaches_the_search(folder, asked, script, flags):
    assert run_script(script, *flags, *OWN, cwd=folder).returncode == 130
    [(source, bounds, training, device)] = asked
    assert (source.ratio, bounds, device) == (12, [1, 2], "fake")
    assert (training.dtype, training.ddp) == ("bfloat16", flags is LONG)


def test_what_is_not_said_is_as_in_the_guide(folder, asked):
    assert run_script(ASR, *OWN[:2], cwd=folder).returncode == 130
    [(source, bounds, training, device)] = asked
    assert (source.ratio, bounds, device) == (12, [5, 10, 15, 20, 25, 30], "cuda:0")
    assert (training.dtype, training.ddp, training.optimizer) == ("bfloat16", True, "adamw")


def test_pairs_are_bins_of_two_lengths(folder, asked):
    assert run_script(ASR, *OWN, "-b", "[[1,5],[1,9],[2,9]]", cwd=folder).returncode == 130
    [(_, bounds, _, _)] = asked
    assert bounds == [(1, 5), (1, 9), (2, 9)]


def test_o_is_the_optimizer_as_in_the_guide(folder, asked):
    done = run_script(ASR, *OWN, "-o", "sgd", "--output", "p.yaml", cwd=folder)
    assert "note: -o" not in done.stderr
    [(_, _, training, _)] = asked
    assert training.optimizer == "sgd"


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        (ASR, ("-n", "nvidia/parakeet-tdt-0.6b", "-m", "a.B", "-c", "c.yaml"), "exclude each"),
        (ASR, ("-m", "nemo.collections.asr.models.EncDecCTCModelBPE"), "--module-name needs"),
        (ASR, ("-c", "train.yaml"), "--config-path belongs to --module-name"),
        (ASR, ("-m", "a.B", "-c", "gone.yaml"), "gone.yaml"),
        (ASR, (), "No model is given"),
        (ASR, (*OWN[:2], "-b", "[5,10"), "no list"),
        (ASR, (*OWN[:2], "-b", "[]"), "There are no buckets"),
        (ASR, (*OWN, "-b", "empty.yaml"), "empty.yaml"),
        (ASR, (*OWN, "-b", "half.yaml"), "half.yaml"),
        (ASR, (*OWN, "-b", "gone.yaml"), "gone.yaml"),
        (SPEECHLM, (), "No model is given"),
        (SPEECHLM, ("-n", "salm"), "-n is not to be had here: speech language models are made"),
        (SPEECHLM, ("--pretrained-name=salm",), "--pretrained-name is not to be had here"),
        (SPEECHLM, (*OWN, "--salm-audio-token-ratio", 0), "--salm-audio-token-ratio is 0"),
    ],
)
def test_a_slip_is_one_line_and_exit_code_2(folder, script, arguments, said):
    (folder / "empty.yaml").write_text("")
    (folder / "half.yaml").write_text("bucket_duration_bins: [5,\n")
    done = run_script(script, *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert said in line


@pytest.mark.parametrize(
    ("script", "device", "environment"),
    [
        (ASR, "cuda:0", {}),
        (SPEECHLM, "cuda:0", {}),
        (SPEECHLM, "cuda:3", {"LOCAL_RANK": "3", "WORLD_SIZE": "1"}),
    ],
)
def test_the_line_of_the_guide_is_understood_up_to_the_device(
    folder, asked, script, device, environment
):
    (folder / "train.yaml").write_text("model: {}\n")
    model = ("-m", "nemo.collections.asr.models.EncDecCTCModelBPE", "-c", "train.yaml")
    done = run_script(script, *model, *SHORT, cwd=folder, **environment)
    assert done.returncode == 130
    [(source, bounds, training, name)] = asked
    assert (source.kind, source.name, source.ratio) == ("module", model[1], 12)
    assert (bounds, training.ddp, name) == ([1, 2], False, device)


def test_a_gpu_that_is_not_there_is_one_line(folder, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = run_script(ASR, "--model", "fit_tiny:make", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "cuda" in done.stderr.splitlines()[-1].lower()


def test_one_process_searches_for_all(folder):
    done = run_script(SPEECHLM, *OWN, cwd=folder, WORLD_SIZE="8", LOCAL_RANK="2", RANK="2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "playhead: Torchrun started 8 processes, and one searches for all. Give torchrun"
        " --nproc-per-node 1, or start the script with python.\n"
    )
