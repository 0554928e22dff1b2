"""The scripts and their tables: each file runs its own, and what is written of them is true."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import subprocess
import sys

import pytest
import typer

import playhead.cli
from playhead.cli.default_command import SELF
from playhead.cli.nemo_names import SCRIPTS as NAMES
from playhead.cli.nemo_names.script import Script, idle, kept, passed, refused
from playhead.cli.nemo_names.translating import translated
from playhead.errors import ConfigError, NotSupportedError
from support.command import SCRIPTS, run_script

_PHASE = "dataloading/_validate_dataloader/"
_OOMPTIMIZER = (
    "-m --module-name -c --config-path -b --buckets -t --threshold -s --start-batch-size -r --ratio"
    " -f --memory-fraction -y --dtype --ddp --no-ddp -n --pretrained-name"
)
_BINS = "-b --buckets -n --num_examples -q --quiet"
_DURATIONS = "-l --min_duration -u --max_duration"
_PROMPTS = "-t --tokenizer -s --sub-buckets --text-field --lang-field -f --prompt-format -p"
# Every option that the guides or the scripts themselves have.
GUIDE = {
    "dataloading/build_indexes.py": "--force --workers --dry-run --executor --indexes-root --kind"
    " --data-blend-dir",
    "dataloading/prefetch_indexes.py": "--indexes-root --source-indexes-root --force --workers"
    " --dry-run",
    "dataloading/convert_indexes_to_idxpack.py": "--output --indexes-root --overwrite"
    " --native-tar-paths-only --dry-run --data-blend-dir --accept-trailing-zero-tar-padding"
    " --repair-stale-local-native-tar-sidecars-root --fallback-native-tar-indexes-root"
    " --record-validation-workers --native-tar-route-workers"
    " --reuse-native-tar-routes-source-input-cfg --reuse-native-tar-routes-source-pack"
    " --reuse-native-tar-routes-source-pack-sha256",
    "dataloading/rebind_idxpack_collections.py": "--source-pack --output --data-blend-dir --report"
    " --skip-payload-verification --relocate-paths --path-prefix-map --trust-relocated-payloads",
    "dataloading/analyze_resumable_checkpoint.py": "--checkpoint --checkpoint-path --state-json"
    " --config --data-blend-dir --indexes-root --index-pack-root --default-index-pack-root"
    " --output-dir --output-json --output-md --output-csv --allow-full-ckpt-load"
    " --max-full-load-mb --print-table",
    "dataloading/validate_dataloader.py": "--config --data-blend-dir --section --output-dir --phase"
    " --run-idx --steps --checkpoint-at --state-dir --force-finite --no-force-finite"
    " --metadata-only --no-metadata-only --num-workers-override --mode --input-cfg"
    " --skip-missing-manifest-entries --fail-on-missing-manifest-entries -v",
    f"{_PHASE}pre_validation.py": "--config --data-blend-dir --section --output-dir --ignore-fail"
    " -v",
    f"{_PHASE}consolidate.py": "--output-dir --checkpoint-at --num-determinism-runs -v",
    "speech_recognition/estimate_duration_bins.py": f"{_BINS} {_DURATIONS}",
    "speech_recognition/estimate_duration_bins_2d.py": f"{_BINS} {_DURATIONS} {_PROMPTS} --prompt"
    " -a --langs --max_tps --token_outlier_threshold",
    "speech_recognition/oomptimizer.py": f"{_OOMPTIMIZER} -o --optimizer-name -d --device",
    "speechlm2/estimate_token_bins.py": f"{_BINS} {_PROMPTS} --prompt -l --min_tokens -u"
    " --max_tokens --max_tpt --min_duration --max_duration --token_equivalent_duration"
    " --token_outlier_threshold --audio-locator-tag -m --measure-total-length --quantize-bins"
    " --source-config --output-config",
    "speechlm2/oomptimizer.py": f"{_OOMPTIMIZER} --salm-audio-token-ratio",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_the_guide_is_known(name):
    known = {flag for option in NAMES[name].options for flag in option.names}
    assert {*GUIDE[name].split()} <= known


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused_or_has_no_effect_is_in_the_docs(name):
    page = (SCRIPTS.parent / "docs" / "nemo-commands.md").read_text()
    assert f"`{name}`" in page
    for option in NAMES[name].options:
        if option.reasons and option.reasons != {None: ""}:
            assert any(flag in page for flag in option.names), option.names


def test_every_script_is_a_file_and_every_file_a_script():
    assert {str(path.relative_to(SCRIPTS)) for path in SCRIPTS.rglob("*.py")} == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_help_names_every_option_of_the_guide(tmp_path, name):
    done = run_script(name, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {name} [OPTIONS]")
    for option in NAMES[name].options:
        assert f"\n  {', '.join(option.names)}" in done.stdout


@functools.cache
def commands():
    """All commands, as the command line has them."""
    for module in pkgutil.iter_modules(playhead.cli.__path__):
        if not module.ispkg:
            importlib.import_module(f"playhead.cli.{module.name}")
    return typer.main.get_command(playhead.cli.app)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_that_is_passed_on_is_one_of_the_command(name):
    script = NAMES[name]
    command = commands()
    for word in script.command:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
    if hasattr(command, "commands"):
        command = command.commands[SELF]
    has = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    for option in script.options:
        if option.fate == "passed":
            assert option.names[-1] in has, option.names


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys, atexit, runpy\n"
        "heavy = ('torch', 'numpy', 'lhotse', 'pyarrow', 'omegaconf')\n"
        "atexit.register(lambda: print('LOADED', *[m for m in heavy if m in sys.modules]))\n"
        f"sys.argv[:] = ['s', '--help']; runpy.run_path({str(SCRIPTS / next(iter(NAMES)))!r},"
        " run_name='__main__')"
    )
    started = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.stdout.rstrip().endswith("LOADED"), started.stdout + started.stderr


def test_a_script_can_be_had_without_a_checkout(tmp_path):
    for arguments, code in ((["speechlm2/oomptimizer.py", "--help"], 0), (["no.py"], 2), ([], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "playhead.cli.nemo_names", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code
        assert "dataloading/build_indexes.py" in done.stderr or not code


# Translating --------------------------------------------------------------------------------------

SCRIPT = Script(
    about="Do something.",
    usage="FILE",
    command=("index", "--embed-rows"),
    run=print,
    options=(
        passed("-w", "--count", "--workers", default="4"),
        passed("--force", takes=0),
        passed("--map", takes=2),
        passed("--kind", without={"other": "there is none. Leave it out."}),
        idle("--how", reasons={"": "", "slow": "it is quick"}),
        kept("--report"),
        refused("--magic", takes=0, why="there is none. Do it by hand."),
    ),
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a"], ["--workers", "4", "a"]),
        (["-w", "2", "a"], ["--workers", "2", "a"]),
        (["-w2", "a"], ["--workers", "2", "a"]),
        (["--count=2", "a"], ["--workers", "2", "a"]),
        (["--workers", "1", "--count", "2"], ["--workers", "1", "--workers", "2"]),
        (["--map", "x", "-y", "--force"], ["--workers", "4", "--map", "x", "-y", "--force"]),
        (["--own=1", "--other", "a"], ["--workers", "4", "--own=1", "--other", "a"]),
        (["--", "--magic"], ["--workers", "4", "--", "--magic"]),
        (["-x2"], ["--workers", "4", "-x2"]),
        (["--kind", "this"], ["--workers", "4", "--kind", "this"]),
    ],
)
def test_arguments_are_those_of_the_command(given, expected):
    assert translated(SCRIPT, given).arguments == ["index", "--embed-rows", *expected]


def test_what_a_script_acts_on_is_not_for_the_command():
    given = translated(SCRIPT, ["-w", "2", "--report=r.json", "a"])
    assert given.arguments == ["index", "--embed-rows", "--workers", "2", "a"]
    assert given.kept == {"--report": ["r.json"]}


def test_what_has_no_effect_is_said_once():
    assert translated(SCRIPT, ["--how", "slow", "--how=slow"]).notes == ["it is quick"]
    assert translated(SCRIPT, ["--how", ""]).notes == []


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (["--magic"], NotSupportedError, "--magic is not to be had here: there is none. Do it by"),
        (["--kind", "other"], NotSupportedError, "--kind other is not to be had here: there is"),
        (["--how", "quick"], ConfigError, "--how is 'quick'"),
        (["--map", "x"], ConfigError, "--map has 1 values, and takes 2"),
        (["--force=1"], ConfigError, "--force has 1 values, and takes 0"),
    ],
)
def test_what_is_not_to_be_had_is_refused_by_name(given, kind, said):
    with pytest.raises(kind, match="^" + said):
        translated(SCRIPT, given)
