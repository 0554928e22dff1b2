"""The command takes the guide's flags, and says in one line what is wrong with them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from playhead.cli.oomptimizer_request import identity_of, outputs_of, source_of
from playhead.errors import ConfigError
from playhead.fit.bounds import read_buckets
from playhead.fit.model import ModelSource
from playhead.fit.training import Training
from support.command import run_command
from support.fit_in_memory import write_model

ROOT = Path(__file__).parents[2]
FAKE = ("--device", "fake", "--memory", "80GiB")
MODEL = ("--model", "some_module:make")


def test_help_needs_no_torch_and_the_alias_has_the_same_options():
    said = []
    for name in ("oomptimizer", "fit"):
        code = (
            "import sys, atexit\n"
            "heavy = ('torch', 'numpy', 'lhotse', 'pyarrow', 'omegaconf')\n"
            "atexit.register(lambda: print('LOADED', *[m for m in heavy if m in sys.modules]))\n"
            f"import playhead.cli as cli; sys.argv[1:] = ['{name}', '--help']; cli.main()"
        )
        started = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert started.stdout.rstrip().endswith("LOADED"), started.stdout + started.stderr
        said.append([line for line in started.stdout.splitlines() if line.startswith("│ ")])
    assert said[0] == said[1]
    flags = " ".join(said[0])
    assert all(f" -{letter} " in flags for letter in "nmcbtsrfdyo")
    assert all(flag in flags for flag in ("--ddp", "--no-ddp", "--salm-audio-token-ratio"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "No model is given. Give --pretrained-name, --module-name with --config-path, --hf"),
        (("-n", "a", "--model", "b:c"), "--pretrained-name and --model exclude each other"),
        (("-n", "a", "-m", "b", "-c", "c"), "--pretrained-name and --module-name exclude each"),
        (("-m", "nemo.collections.asr.models.EncDecCTCModel"), "--module-name needs the training"),
        (("-c", "config.yaml"), "--config-path belongs to --module-name"),
        (("-n", "a", "-c", "config.yaml"), "--config-path belongs to --module-name"),
        (("-m", "some.Class", "-c", "missing.yaml"), "config does not exist (missing.yaml)"),
        (("--model", "my_models"), "'my_models' names no model"),
        (("--hf", "bert", "x"), "There is no recipe 'bert'"),
        ((*MODEL, "--attention", "eager"), "--attention is for Hugging Face models"),
        ((*MODEL, "--gradient-checkpointing"), "--gradient-checkpointing is for Hugging Face"),
        ((*MODEL, "-b", "[5, 10"), "which is no list"),
        ((*MODEL, "-b", "[]"), "There are no buckets"),
        ((*MODEL, "-b", "[10, 5]"), "The bucket 5 comes after 10"),
        ((*MODEL, "-b", "[5, [10, 20]]"), "numbers and pairs at once"),
        ((*MODEL, "-b", "bins.yaml"), "file of buckets does not exist (bins.yaml)"),
        ((*MODEL, "-t", "0"), "--threshold is 0, and has to be above 0 and up to 0.5"),
        ((*MODEL, "-t", "nan"), "--threshold is nan"),
        ((*MODEL, "-r", "-3"), "--ratio is -3, and has to be above 0"),
        ((*MODEL, "-r", "inf"), "--ratio is inf"),
        ((*MODEL, "-f", "1.2"), "--memory-fraction is 1.2, and has to be above 0 and up to 1"),
        ((*MODEL, "--salm-audio-token-ratio", "0"), "--salm-audio-token-ratio is 0"),
        ((*MODEL, "--probe-timeout", "0"), "--probe-timeout is 0"),
        ((*MODEL, "--prediction-timeout", "0"), "--prediction-timeout is 0"),
        ((*MODEL, "--multiple-of", "8", "--max-batch-size", "4"), "--multiple-of is 8, and has"),
        ((*MODEL, "-y", "int8"), "'int8' is no dtype to train in"),
        ((*MODEL, "-d", "fake"), "--device fake has no memory of its own"),
        ((*MODEL, "-d", "cpu"), "--device cpu has no memory of its own"),
        ((*MODEL, *FAKE[:2], "--memory", "lots"), "'lots' is no amount of memory"),
        ((*MODEL, "-o", "profile.json"), "'profile.json' is neither a .yaml file nor"),
        ((*MODEL, "-o", "a.yaml", "-o", "b.yaml"), "-o is given a.yaml and b.yaml"),
        ((*MODEL, "-o", "sgd", "--optimizer-name", "adamw"), "-o is given sgd, and --optimizer"),
    ],
)
def test_a_slip_is_one_line_and_exit_code_2(tmp_path, flags, said):
    ran = run_command("oomptimizer", *flags, cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    [line] = ran.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert said in line
    # Nothing was begun.
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize(
    "flags", [("-s", "0"), ("--accumulate", "0"), ("--verify", "-1"), ("--hf", "whisper")]
)
def test_what_the_parser_refuses_is_exit_code_2(tmp_path, flags):
    ran = run_command("fit", *MODEL, *flags, cwd=tmp_path)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("given", "named", "profile", "optimizer", "notes"),
    [
        ([], None, None, "adamw", 0),
        (["p.yaml"], None, "p.yaml", "adamw", 0),
        (["sgd"], None, None, "sgd", 1),
        (["sgd", "there/p.yml"], None, "there/p.yml", "sgd", 1),
        (["p.yaml"], "sgd", "p.yaml", "sgd", 0),
        (["sgd"], "sgd", None, "sgd", 1),
    ],
)
def test_o_is_a_file_or_the_name_of_an_optimizer(given, named, profile, optimizer, notes):
    outputs = outputs_of(given, named)
    assert (None if outputs.profile is None else str(outputs.profile)) == profile
    assert outputs.optimizer == optimizer
    assert len(outputs.notes) == notes


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-o", "bins.yaml"), "This file would be written, and is read"),
        (("-o", "there/../bins.yaml"), "This file would be written, and is read"),
        (("-o", "p.yaml", "--journal", "p.yaml"), "This file would be written, and is"),
        (("--journal", "tries.log"), "This file would be written, and is"),
        (("--journal", "bins.yaml"), "This file would be written, and is read"),
        (("--journal", "there"), "'there' is a folder (--journal)"),
        (("--journal", ""), "'' is a folder (--journal)"),
        (("-o", "there.yaml"), "'there.yaml' is a folder (--output)"),
    ],
)
def test_nothing_that_is_read_or_written_is_written_over(tmp_path, flags, said):
    (tmp_path / "bins.yaml").write_text("bucket_duration_bins: [5, 10]\n")
    for name in ("there", "there.yaml"):
        (tmp_path / name).mkdir()
    ran = run_command("fit", *MODEL, *FAKE, "-b", "bins.yaml", *flags, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not list(tmp_path.rglob("*.j*"))


def test_what_a_config_in_a_folder_says_is_part_of_the_journal(tmp_path):
    (tmp_path / "config.json").write_text('{"d_model": 64}')
    source = ModelSource(kind="hf", name="whisper", config=str(tmp_path))
    before = identity_of(source, Training(), read_buckets("[5]"), {})
    (tmp_path / "config.json").write_text('{"d_model": 96}')
    assert identity_of(source, Training(), read_buckets("[5]"), {}) != before


def test_a_pair_names_a_hugging_face_model():
    nothing = dict.fromkeys(("pretrained_name", "module_name", "config_path", "model"))
    source = source_of(
        **nothing, hf=("whisper", "tiny"), attn_implementation="eager", gradient_checkpointing=True
    )
    assert (source.kind, source.name, source.config) == ("hf", "whisper", "tiny")
    assert source.attn_implementation == "eager"
    assert source.gradient_checkpointing
    with pytest.raises(ConfigError):
        source_of(**nothing, hf=None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, write_model(tmp_path), raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--model", "no_such_module:make"), "There is no module no_such_module"),
        (("--model", "fit_tiny:nothing"), "fit_tiny has no nothing"),
        (("--model", "fit_tiny:NoBatches"), "NoBatches has no make_batch"),
        (("--model", "fit_tiny:raises"), "KeyError: 'hidden_size'"),
        (("--model", "fit_tiny:make", "-d", "abacus"), "abacus"),
        (("--model", "fit_tiny:make", "--optimizer-name", "no_such"), "no_such"),
    ],
)
def test_a_model_that_cannot_be_used_is_one_line(folder, flags, said):
    ran = run_command("fit", *FAKE, *flags, cwd=folder)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert said in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr


WHISPER = {
    "model_type": "whisper",
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "vocab_size": 1000,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}


def whisper(folder, *flags):
    pytest.importorskip("transformers", reason="transformers comes with the hf extra")
    (folder / "config.json").write_text(json.dumps(WHISPER))
    asked = ("fit", "--hf", "whisper", "config.json", "-d", "fake", "-b", "[30]", *flags)
    ran = run_command(*asked, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return ran


def test_a_dry_run_for_whisper_tries_nothing(tmp_path):
    ran = whisper(tmp_path, "--memory", "8GiB", "--dry-run")
    assert "bucket=30 (input=3000 output=360): batch_size=32 holds" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("first: bucket=30 (input=3000 output=360) ")
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.slow
def test_an_estimate_for_whisper_needs_no_gpu(tmp_path):
    ran = whisper(tmp_path, "--memory", "8GiB", "-o", "p.yaml", "--json")
    result = json.loads(ran.stdout)
    [small] = result["options"]["bucket_batch_size"]
    assert result["buckets"][0]["allocated"] < 0.9 * (8 << 30)
    assert result["buckets"][0]["measured"] is False
    assert ran.stderr.count("note: an estimate") == 1
    assert "OK!" in ran.stderr
    ran = whisper(tmp_path, "--memory", "16GiB", "-o", "q.yaml")
    profile = (tmp_path / "q.yaml").read_text()
    [large] = yaml.safe_load(profile)["bucket_batch_size"]
    assert 1.5 * small < large
    assert "# device: a GPU that was not there: an estimate" in profile
    assert "(measured)" not in profile
    assert ran.stdout.endswith(
        f"The final profile is:\n\tbucket_duration_bins=[30]\n\tbucket_batch_size=[{large}]\n"
    )


def test_a_journal_nobody_asked_for_goes_and_one_that_is_there_is_not_written_over(folder):
    asked = ("fit", "--model", "fit_tiny:make", "-d", "fake", "--memory", "4GiB", "-b", "[1]")
    ran = run_command(*asked, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert not list(folder.rglob("*.jsonl"))
    kept = run_command(*asked, "--journal", "tries.jsonl", cwd=folder)
    assert (kept.returncode, kept.stdout) == (0, ran.stdout)
    before = (folder / "tries.jsonl").read_bytes()
    again = run_command(*asked, "--journal", "tries.jsonl", cwd=folder)
    assert again.returncode == 2
    assert "There is a journal already" in again.stderr
    resumed = run_command(*asked, "--journal", "tries.jsonl", "--resume", cwd=folder)
    assert (resumed.returncode, resumed.stdout) == (0, ran.stdout)
    assert (folder / "tries.jsonl").read_bytes() == before
    other = run_command(*asked, "--journal", "tries.jsonl", "--resume", "--ema", cwd=folder)
    assert other.returncode == 2
    assert "the journal is of another search: ema was false and is true" in other.stderr.lower()


def test_ctrl_c_says_how_to_go_on(folder, monkeypatch):
    from playhead.fit.fake.prober import FakeProber

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeProber, "probe", interrupted)
    asked = ("fit", "--model", "fit_tiny:make", "-d", "fake", "--memory", "4GiB", "-o", "p.yaml")
    ran = run_command(*asked, cwd=folder)
    assert ran.returncode == 130
    assert ran.stderr.splitlines()[-1] == (
        "stopped; what was tried is in p.journal.jsonl, and --resume goes on"
    )
    assert not (folder / "p.yaml").exists()


def test_searches_of_another_dtype_or_memory_are_not_in_each_others_way(folder, monkeypatch):
    from playhead.fit.fake.prober import FakeProber

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeProber, "probe", interrupted)

    def code(*flags):
        asked = ("fit", "--model", "fit_tiny:make", "-d", "fake", "-b", "[1]", *flags)
        return run_command(*asked, cwd=folder).returncode

    assert code("--memory", "4GiB") == 130
    assert code("--memory", "4GiB", "-y", "float16") == 130
    assert code("--memory", "5GiB") == 130
    assert code("--memory", "4GiB") == 2
    assert code("--memory", "4GiB", "--resume") == 130


def test_the_commands_of_the_page_are_understood():
    from playhead.cli import app, bins, check

    assert bins
    assert check
    page = (ROOT / "docs" / "oomptimizer.md").read_text()
    commands = [
        shlex.split(line)[1:]
        for block in re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.startswith("playhead ")
    ]
    assert len(commands) >= 10
    group = typer.main.get_command(app)
    for name, *arguments in commands:
        command = group.commands[name]
        context = command.make_context(name, list(arguments))
        assert context.params
