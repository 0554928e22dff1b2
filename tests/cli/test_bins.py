"""`playhead bins`: what it prints and writes, and what it refuses in one line."""

from __future__ import annotations

import gzip
import json

import pytest
import yaml

import playhead
from playhead.blend import read_blend
from playhead.datasets import Ids
from support.command import run_command
from support.corpus import write_jsonl
from support.shar import simple_cuts, write_shar
from support.token_models import hf_bytes, sentencepiece_bytes, write

LENGTHS = [round(0.5 + 0.037 * number, 3) for number in range(400)]
HEADING = "Use the following options in your config:\n"


def rows(lengths, language="en"):
    return [
        {
            "audio_filepath": f"{language}{number}.wav",
            "duration": seconds,
            "text": "the quick dog " * (1 + int(seconds * (1 + number % 3) / 3)),
            "lang": language,
        }
        for number, seconds in enumerate(lengths)
    ]


@pytest.fixture
def folder(tmp_path):
    write_jsonl(tmp_path / "train.json", rows(LENGTHS))
    return tmp_path


@pytest.fixture
def bins(folder):
    """Runs the command, and gives what it printed once it has succeeded."""

    def run(*arguments):
        ran = run_command("bins", *arguments, cwd=folder)
        assert ran.returncode == 0, ran.stderr
        assert "Traceback" not in ran.stderr
        return ran

    return run


def options_in(stdout):
    """What stands below the heading."""
    below = stdout.partition(HEADING)[2]
    return {
        key: json.loads(value)
        for key, value in (line.strip().split("=", 1) for line in below.splitlines())
    }


# Lines and files ----------------------------------------------------------------------------------


def test_the_lines_of_the_guides_are_printed(bins):
    ran = bins("train.json", "-b", 5)
    assert ran.stdout.startswith(f"Used 400 examples.\n{HEADING}\tuse_bucketing=1\n")
    options = options_in(ran.stdout)
    edges = options["bucket_duration_bins"]
    assert list(options) == ["use_bucketing", "num_buckets", "bucket_duration_bins", "max_duration"]
    assert options["num_buckets"] == len(edges) == 5
    assert edges[-1] == max(LENGTHS) == options["max_duration"]


def test_what_is_written_is_what_a_config_takes(folder, bins):
    ran = bins("train.json", "-b", 4, "-o", "out/bins.yaml")
    text = (folder / "out" / "bins.yaml").read_text()
    assert text.startswith("# Made by playhead ")
    (folder / "blend.yaml").write_text(f"{text}manifest_filepath: train.json\nbatch_size: 2\n")
    options = read_blend(str(folder / "blend.yaml"), strict=True).options
    assert list(options.bucket_duration_bins) == options_in(ran.stdout)["bucket_duration_bins"]
    assert options.max_duration == max(LENGTHS)


def test_quiet_prints_the_options_alone(bins):
    ran = bins("train.json", "-q", "-b", 1000, "--max-duration", 5)
    assert ran.stdout.startswith(HEADING)
    assert ran.stderr == ""


def test_json_is_for_programs(bins):
    ran = bins("train.json", "-b", 3, "--json", "-u", 10, "--optimize")
    said = json.loads(ran.stdout)
    refused = sum(seconds > 10 for seconds in LENGTHS)
    assert said["refused"] == {"max_duration": refused}
    assert said["accepted"] == said["used"] == 400 - refused
    assert said["options"]["num_buckets"] == 3
    assert said["padding"]["least_padding"] < said["padding"]["equal_mass"]


def test_what_filters_refuse_is_counted_and_said(folder, bins):
    (folder / "blend.yaml").write_text(
        "train_ds: {manifest_filepath: train.json, min_duration: 2, max_duration: 9,"
        " bucket_duration_bins: [1, 2], bucket_batch_size: [2, 1]}\n"
    )
    short, long = sum(x < 2 for x in LENGTHS), sum(x > 9 for x in LENGTHS)
    ran = bins("blend.yaml")
    assert ran.stdout.startswith(
        f"Refused {short + long} examples: min_duration {short}, max_duration {long}.\n"
    )
    # What the call says wins.
    ran = bins("blend.yaml", "-l", 3, "--max_duration", 8)
    short, long = sum(x < 3 for x in LENGTHS), sum(x > 8 for x in LENGTHS)
    assert f"min_duration {short}, max_duration {long}" in ran.stdout


def test_the_bins_that_are_there_do_not_matter(folder, bins):
    (folder / "blend.yaml").write_text(
        "train_ds: {manifest_filepath: train.json, bucket_duration_bins: [1, 2],"
        " bucket_batch_size: [2], max_tps: [3.0]}\n"
    )
    ran = bins("blend.yaml", "-b", 5)
    assert ran.stdout == bins("train.json", "-b", 5).stdout
    assert ran.stderr == ""


def test_optimizing_says_what_is_gained(bins):
    ran = bins("train.json", "-b", 6, "--optimize")
    assert "% of what is batched with these edges, and" in ran.stdout


def test_a_config_gets_the_bins_and_loses_the_old_ones(folder, bins):
    (folder / "train.yaml").write_text(
        "model:\n  train_ds:\n    manifest_filepath: train.json\n    text_field: ${model.field}\n"
        "    bucket_duration_bins: [1, 2]\n    bucket_batch_size: [8, 4]\n    max_tps: [1.0, 2.0]\n"
        "    batch_duration: 100\n  field: answer\nname: no\n"
    )
    bins("train.yaml", "-b", 4, "--source-config", "train.yaml", "--output-config", "new.yaml")
    written = yaml.safe_load((folder / "new.yaml").read_text())
    section = written["model"]["train_ds"]
    assert section["num_buckets"] == len(section["bucket_duration_bins"]) == 4
    assert section["text_field"] == "${model.field}"
    assert section["batch_duration"] == 100
    assert {"bucket_batch_size", "max_tps"}.isdisjoint(section)
    assert written["name"] == "no"
    assert read_blend(str(folder / "new.yaml")).options.num_buckets == 4


# Inputs -------------------------------------------------------------------------------------------


def test_all_ways_to_name_the_same_data_give_the_same_bins(folder, bins):
    (folder / "blend.yaml").write_text("- {type: nemo, manifest_filepath: train.json}\n")
    (folder / "train.json.gz").write_bytes(gzip.compress((folder / "train.json").read_bytes()))
    expected = options_in(bins("train.json", "-b", 7).stdout)
    for named in (
        ["blend.yaml"],
        ["train.json.gz"],
        ["[[train.json]]"],
        ["[['train.json', 0.5]]"],
        ["manifest_filepath=train.json"],
        ["type=nemo", "manifest_filepath=train.json"],
    ):
        assert options_in(bins(*named, "-b", 7).stdout) == expected, named


def test_cuts_and_shar_folders_are_told_apart(folder, bins):
    cuts = simple_cuts(folder / "audio", [f"c{number}" for number in range(9)])
    write_shar(folder / "shar", cuts)
    write_jsonl(folder / "cuts.jsonl", [cut.to_dict() for cut in cuts])
    longest = max(cut.duration for cut in cuts)
    for named in (["shar"], ["cuts.jsonl"], ["[[cuts.jsonl, 2], [cuts.jsonl, 1]]"]):
        options = options_in(bins(*named, "-b", 3).stdout)
        assert options["max_duration"] == pytest.approx(longest, abs=1e-5), named


@pytest.mark.parametrize("kind", ["manifest", "cuts", "shar"])
def test_several_files_without_weights_are_all_rows_alike(folder, bins, kind):
    if kind == "manifest":
        write_jsonl(folder / "one.json", rows(LENGTHS[:40]))
        write_jsonl(folder / "two.json", rows(LENGTHS[40:]))
        write_jsonl(folder / "both.json", rows(LENGTHS))
        both, names = "both.json", ["one.json", "two.json"]
    else:
        cuts = simple_cuts(folder / "audio", [f"c{number}" for number in range(20)])
        for name, some in (("one", cuts[:4]), ("two", cuts[4:]), ("both", cuts)):
            write_shar(folder / name, some)
            write_jsonl(folder / f"{name}.jsonl", [cut.to_dict() for cut in some])
        end = "" if kind == "shar" else ".jsonl"
        both, names = f"both{end}", [f"one{end}", f"two{end}"]
    expected = options_in(bins(both, "-b", 5).stdout)
    assert options_in(bins(*names, "-b", 5).stdout) == expected
    assert options_in(bins(f"[[{names[0]}],[{names[1]}]]", "-b", 5).stdout) == expected


def test_weights_of_a_list_count(folder, bins):
    write_jsonl(folder / "short.json", rows([0.1 + 0.001 * n for n in range(400)], "de"))
    even = options_in(bins("[[train.json, 0.5], [short.json, 0.5]]", "-b", 5).stdout)
    short = options_in(bins("[[train.json, 1], [short.json, 1000]]", "-b", 5).stdout)
    assert short["bucket_duration_bins"][0] < even["bucket_duration_bins"][0]
    assert short["max_duration"] == even["max_duration"] == max(LENGTHS)


def test_one_of_several_blends_is_chosen_by_its_section(folder, bins):
    (folder / "several.yaml").write_text(
        "train_ds:\n  multi_config: true\n  seed: 1\n  shuffle: true\n"
        "  a: {manifest_filepath: train.json}\n"
        "  b: {manifest_filepath: train.json, max_duration: 2}\n"
    )
    ran = run_command("bins", "several.yaml", cwd=folder)
    assert ran.returncode == 2
    assert "2 blends" in ran.stderr
    assert "a, b" in ran.stderr
    options = options_in(bins("several.yaml", "--section", "train_ds.b", "-b", 3).stdout)
    assert options["max_duration"] <= 2


# Tokens -------------------------------------------------------------------------------------------


def test_bins_of_two_lengths_train_as_they_are(folder, bins, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    write(folder / "en.model", sentencepiece_bytes("en"))
    ran = bins("train.json", "-b", 4, "-t", "en.model", "-s", 3, "-o", "bins.yaml")
    options = options_in(ran.stdout)
    edges = options["bucket_duration_bins"]
    assert options["num_buckets"] == len(edges) == len(options["max_tps"]) > 4
    text = (folder / "bins.yaml").read_text()
    (folder / "blend.yaml").write_text(
        f"{text}manifest_filepath: train.json\nforce_finite: true\n"
        f"bucket_batch_size: {[1] * len(edges)}\n"
    )
    loader = playhead.dataloader("blend.yaml", dataset=Ids(), tokenizer="en.model")
    assert sum(len(batch["ids"]) for batch in loader) == 400


def test_each_language_has_its_tokenizer(folder, bins):
    write(folder / "en.model", sentencepiece_bytes("en"))
    write(folder / "de.model", sentencepiece_bytes("de"))
    write_jsonl(folder / "de.json", rows(LENGTHS[:50], "de"))
    several = ["train.json", "de.json", "-b", 3]
    expected = bins(*several, "--tokenizer", "en=en.model,de=de.model")
    for said in (
        ["-t", "en.model", "de.model", "-a", "en", "de"],
        ["-t", "en.model", "-t", "de.model", "--langs", "en", "--langs", "de"],
    ):
        assert bins(*several, *said).stdout == expected.stdout


def test_the_prompt_counts(folder, bins):
    write(folder / "spl.model", sentencepiece_bytes("en", special=True))
    slots = {"source_lang": "en", "target_lang": "en", "task": "asr", "pnc": "yes"}
    prompt = str([{"role": "user", "slots": slots}])
    plain = options_in(bins("train.json", "-b", 3, "-t", "spl.model").stdout)
    prompted = options_in(
        bins("train.json", "-b", 3, "-t", "spl.model", "-f", "canary", "-p", prompt).stdout
    )
    assert [second for _, second in prompted["bucket_duration_bins"]] > [
        second for _, second in plain["bucket_duration_bins"]
    ]
    ran = run_command("bins", "train.json", "-t", "spl.model", "-f", "canary", cwd=folder)
    assert ran.returncode == 1
    assert "source_lang" in ran.stderr


def test_bins_of_tokens_say_what_a_token_is(folder, bins):
    write(folder / "tokenizer.json", hf_bytes())
    ran = bins("train.json", "--tokens", "-t", "tokenizer.json", "-b", 5)
    assert "token_equivalent_duration is 0.08" in ran.stderr
    options = options_in(ran.stdout)
    edges = options["bucket_duration_bins"]
    assert edges[-1] == options["max_tokens"]
    assert all(isinstance(edge, int) for edge in edges)
    assert options["use_multimodal_sampling"] == 1
    assert options["token_equivalent_duration"] == 0.08
    shorter = options_in(
        bins("train.json", "--tokens", "-t", "tokenizer.json", "-b", 5, "-m", "false").stdout
    )
    assert shorter["max_tokens"] == 191  # 15.263 s, without what is said
    assert shorter["measure_total_length"] == 0


def test_bins_of_tokens_are_round_and_limited_on_request(folder, bins):
    write(folder / "tokenizer.json", hf_bytes())
    of_tokens = ["train.json", "--tokens", "-t", "tokenizer.json", "-b", 5]
    ran = bins(*of_tokens, "--quantize-bins", "pow2", "-l", 40, "-u", 200, "--max_tpt", 0.3)
    assert set(options_in(ran.stdout)["bucket_duration_bins"]) <= {32, 64, 128, 256}
    assert options_in(ran.stdout)["max_tokens"] <= 200
    for reason in ("min_tokens", "max_tokens", "max_tpt"):
        assert reason in ran.stdout.splitlines()[0]


def test_bins_of_tokens_are_split_by_the_answer(folder, bins):
    write(folder / "tokenizer.json", hf_bytes())
    ran = bins("train.json", "--tokens", "-t", "tokenizer.json", "-b", 3, "-s", 2, "--optimize")
    options = options_in(ran.stdout)
    assert options["num_buckets"] == len(options["max_tpt"])
    assert all(len(bound) == 2 for bound in options["bucket_duration_bins"])


def test_limits_in_tokens_of_a_config_are_not_looked_at_without_a_tokenizer(folder, bins):
    (folder / "blend.yaml").write_text(
        "{manifest_filepath: train.json, max_tokens: 99, min_tpt: 0.5, max_tps: 12}\n"
    )
    ran = bins("blend.yaml")
    assert "max_tokens and min_tpt: not looked at" in ran.stderr
    assert "min_tps or max_tps: no effect" in ran.stderr


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone.json"], 2, "no such file or folder (gone.json)"),
        (["gone.yaml"], 2, "gone.yaml"),
        (["empty.json"], 2, "The file has no rows (empty.json)"),
        (["text.json"], 2, "no JSON object (text.json:1)"),
        (["other.jsonl"], 2, "neither one of a NeMo manifest"),
        (["a.wav"], 2, "no input that bins can be made of (a.wav)"),
        (["half.json"], 1, "half.json:2"),
        (["cut.json.gz"], 1, "cut.json.gz"),
        (["entries.yaml"], 2, "no entries"),
        (["broken.yaml"], 2, "not valid YAML"),
        (["[[train.json"], 2, "no list of paths ([[train.json)"),
        (["[[train.json, -1]]"], 2, "no list of paths"),
        (["[]"], 2, "no list of paths"),
        (["[[cuts.jsonl, 1], [cuts.jsonl]]"], 2, "some cuts have a weight"),
        (["[[train.json], [cuts.jsonl]]"], 2, "several kinds: cuts, manifest"),
        (["train.json", "a.yaml"], 2, "stands among other inputs"),
        (["train.json", "type=nemo"], 2, "some inputs are key=value"),
        (["type=nemo", "type=nemo"], 2, "type is given twice"),
        (["type=nemo"], 2, "manifest_filepath"),
        (["manifest_filepth=train.json"], 2, "manifest_filepath"),
        (["train.json", "-b", "1"], 2, "--buckets is 1"),
        (["train.json", "-b", "-4"], 2, "--buckets is -4"),
        (["train.json", "-n", "0"], 2, "--num_examples is 0"),
        (["train.json", "-u", "-3"], 2, "max_duration"),
        (["train.json", "-u", "nan"], 2, "nan is no limit"),
        (["train.json", "-u", "0.1"], 2, "max_duration refuses 400"),
        (["train.json", "-l", "9", "-u", "3"], 2, "nothing would be kept"),
        (["train.json", "-s", "2"], 2, "nothing counts tokens"),
        (["train.json", "--tokens"], 2, "nothing counts tokens"),
        (["train.json", "-a", "en"], 2, "--langs is given without --tokenizer"),
        (["train.json", "-t", "a.model", "b.model"], 2, "2 tokenizers for 0 languages"),
        (["train.json", "-t", "gone.model"], 2, "gone.model"),
        (["train.json", "--max_tokens", "9"], 2, "only bins of tokens have --max-tokens"),
        (["train.json", "-p", "hello", "-t", "x"], 2, "--prompt is 'hello'"),
        (["train.json", "--source-config", "a.yaml"], 2, "go together"),
        (
            ["train.json", "--source-config", "entries.yaml", "--output-config", "b.yml"],
            2,
            "no room",
        ),
        (["train.json", "-p", "[]"], 2, "only bins with a --tokenizer have --prompt"),
        (["train.json", "--token_outlier_threshold", "3"], 2, "only bins of two lengths"),
        (["train.json", "-n", "9" * 20], 2, "at most 1,000,000,000,000,000"),
        (["train.json", "-l", "2", "--min_duration", "3"], 2, "-l is given in its long form too"),
        (["train.json", "-t", "t.json", "--text-field", "x"], 2, "no sample has a text"),
        (["texts.yaml"], 2, "no length in seconds"),
        (["train.json", "--optimize", "-b", "2000"], 2, "at most 1,000"),
        (["blend.yaml", "--section", "test_ds"], 2, "test_ds"),
    ],
)
def test_wrong_input_is_one_line(folder, arguments, code, said):
    (folder / "empty.json").write_text("\n")
    (folder / "text.json").write_text("hello\n")
    (folder / "a.wav").write_bytes(b"RIFF")
    (folder / "half.json").write_text(
        json.dumps({"audio_filepath": "a.wav", "duration": 1.0})
        + '\n{"audio_filepath": "b.wav", "d'
    )
    whole = gzip.compress((folder / "train.json").read_bytes())
    (folder / "cut.json.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "other.jsonl").write_text('{"text": "hello"}\n')
    (folder / "entries.yaml").write_text("[]\n")
    (folder / "broken.yaml").write_text("a: [\n")
    (folder / "blend.yaml").write_text("train_ds: {manifest_filepath: train.json}\n")
    (folder / "lines.txt").write_text("one\ntwo\n")
    write(folder / "t.json", hf_bytes("en"))
    (folder / "texts.yaml").write_text("- {type: txt, paths: lines.txt, language: en}\n")
    write_jsonl(folder / "cuts.jsonl", [{"id": "a", "type": "MonoCut", "recording": {}}])
    ran = run_command("bins", *arguments, cwd=folder)
    assert ran.returncode == code, ran.stderr
    assert said.lower() in ran.stderr.lower()
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, ran.stderr
    assert "Use the following" not in ran.stdout


def test_bins_that_cannot_be_written_are_printed(folder):
    (folder / "taken").write_text("a file, and no folder")
    ran = run_command("bins", "train.json", "-b", 3, "-o", "taken/bins.yaml", cwd=folder)
    assert ran.returncode == 1
    assert "cannot be written: " in ran.stderr
    assert "(taken/bins.yaml)" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert HEADING in ran.stdout


@pytest.mark.parametrize(
    ("outputs", "option"),
    [
        (["-o", "train.json"], "--output"),
        (["-o", "./blend.yaml"], "--output"),
        (["-o", "other.yaml"], "--output"),
        (["-o", "new.yaml", "--output-config", "new.yaml"], "--output"),
        (["-o", "folder.yaml"], "--output"),
        (["-o", "device"], "--output"),
        (["-o", ""], "--output"),
        (["--output-config", "train.json"], "--output-config"),
        (["--output-config", "blend.yaml"], "--output-config"),
        (["--output-config", "folder.yaml"], "--output-config"),
    ],
)
def test_neither_data_nor_devices_nor_what_is_read_are_written_over(folder, outputs, option):
    (folder / "blend.yaml").write_text("- {type: nemo, manifest_filepath: train.json}\n")
    (folder / "other.yaml").write_text("train_ds: {manifest_filepath: train.json}\n")
    (folder / "folder.yaml").mkdir()
    (folder / "device").symlink_to("/dev/full")
    before = {path: path.lstat().st_ino for path in folder.iterdir()}
    source = ["--source-config", "other.yaml"]
    if "--output-config" not in outputs:
        source += ["--output-config", "unwritten.yaml"]
    ran = run_command("bins", "blend.yaml", *outputs, *source, cwd=folder)
    assert ran.returncode == 2, ran.stderr
    assert f"{option} " in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    # What is written is another file of the same name.
    assert {path: path.lstat().st_ino for path in folder.iterdir()} == before


def test_a_config_may_be_written_anew_in_its_place(folder, bins):
    (folder / "train.yaml").write_text("train_ds: {manifest_filepath: train.json}\n")
    bins("train.yaml", "-b", 3, "--source-config", "train.yaml", "--output-config", "./train.yaml")
    section = yaml.safe_load((folder / "train.yaml").read_text())["train_ds"]
    assert section["num_buckets"] == 3
    assert section["manifest_filepath"] == "train.json"


def test_a_folder_may_be_called_like_a_key_and_its_value(folder, bins):
    write_jsonl(folder / "lang=en" / "train.json", rows(LENGTHS))
    first = options_in(bins("lang=en/train.json", "-b", 3).stdout)
    assert first == options_in(bins("train.json", "-b", 3).stdout)


def test_bins_that_do_not_count_the_answer_are_of_use(folder, bins):
    write(folder / "tokenizer.json", hf_bytes("en"))
    ran = bins("train.json", "--tokens", "-t", "tokenizer.json", "--no-measure-total-length")
    assert options_in(ran.stdout)["measure_total_length"] == 0
    assert "no effect" not in ran.stderr
