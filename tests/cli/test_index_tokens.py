"""`playhead index --tokenizer`: counts beside packs, said and summed up."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from playhead.blend import read_blend
from playhead.cli import app
from playhead.cli import index as _index  # noqa: F401 - it registers its command
from playhead.cli.options import parse_spec
from playhead.index.build import open_leaves
from playhead.tokens.count import find_token_columns
from playhead.tokens.encoding import Encoding
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import hf_bytes, sentencepiece_bytes, sentences, write
from support.token_rows import nemo_row, side_files, write_rows


@pytest.fixture
def corpus(tmp_path):
    texts = sentences(12)
    for name, chosen in (("a", texts[:8]), ("b", texts[8:])):
        rows = [nemo_row(i, text=text, lang="en") for i, text in enumerate(chosen)]
        write_rows(tmp_path / f"{name}.json", rows)
    entries = "".join(
        f"- type: nemo\n  manifest_filepath: {tmp_path}/{name}.json\n" for name in "abba"
    )
    (tmp_path / "blend.yaml").write_text(f"input_cfg:\n{entries}")
    write(tmp_path / "en.model", sentencepiece_bytes())
    write(tmp_path / "de/tokenizer.json", hf_bytes("de"))
    return tmp_path


def index(folder, *arguments):
    base = ["index", str(folder / "blend.yaml"), "--indexes-root", str(folder / "x")]
    return CliRunner().invoke(app, [*base, "--workers", "1", *arguments])


def test_every_source_is_counted_once(corpus):
    spec = str(corpus / "en.model")
    ran = index(corpus, "--tokenizer", spec, "--json")
    assert ran.exit_code == 0, ran.stderr
    tokenizer = load_tokenizer(spec)
    total = sum(len(tokenizer.encode(text)) for text in sentences(12))
    assert f"Tokens: 2 counted, 0 up to date, 0 failed; {total:,} tokens of 12 rows." in ran.stderr
    told = json.loads(ran.stdout)["tokens"]
    assert [one["status"] for one in told] == ["counted", "counted"]
    assert [one["rows"] for one in told] == [8, 4]
    assert sum(one["tokens"] for one in told) == total
    assert sorted(one["path"] for one in told) == [str(path) for path in side_files(corpus)]
    # The loader finds what was counted.
    leaves = read_blend(corpus / "blend.yaml", overrides={"batch_size": 1}).leaves
    for leaf, pack in zip(
        leaves, open_leaves(leaves, pack_dir=str(corpus / "x/playhead")), strict=True
    ):
        found = find_token_columns(leaf, pack, Encoding(tokenizer).digest)
        assert found is not None
        assert len(found["tokens"]) == pack.num_rows


def test_a_configs_own_prompt_is_what_is_counted(corpus):
    blend, spec = corpus / "blend.yaml", str(corpus / "en.model")
    bare = blend.read_text()
    blend.write_text(f"{bare}prompt_format: plain\n")

    def statuses(*arguments):
        ran = index(corpus, "--tokenizer", spec, "--json", *arguments)
        return [one["status"] for one in json.loads(ran.stdout)["tokens"]]

    assert statuses() == ["counted", "counted"]
    assert statuses("--prompt-format", "plain") == ["fresh", "fresh"]
    blend.write_text(bare)
    assert statuses("--prompt-format", "plain") == ["fresh", "fresh"]
    assert statuses() == ["counted", "counted"]


def test_what_is_up_to_date_stays_unless_forced(corpus):
    arguments = ("--tokenizer", str(corpus / "en.model"), "--json")
    index(corpus, *arguments)
    again = json.loads(index(corpus, *arguments).stdout)["tokens"]
    forced = json.loads(index(corpus, *arguments, "--force").stdout)["tokens"]
    assert [one["status"] for one in again] == ["fresh", "fresh"]
    assert [one["status"] for one in forced] == ["counted", "counted"]
    assert [one["tokens"] for one in again] == [one["tokens"] for one in forced]


def test_languages_and_prompts(corpus):
    spec = f"en={corpus}/en.model,de={corpus}/de"
    ran = index(corpus, "--tokenizer", spec, "--prompt-format", "plain")
    assert ran.exit_code == 0, ran.stderr
    assert len(side_files(corpus)) == 2
    index(corpus, "--tokenizer", spec)
    assert len(side_files(corpus)) == 4


def test_what_fails_is_said_and_the_rest_is_counted(corpus):
    write_rows(corpus / "b.json", [nemo_row(text="nous", lang="fr")])
    spec = f"en={corpus}/en.model"
    ran = index(corpus, "--tokenizer", spec, "--json")
    assert ran.exit_code == 1
    assert "Tokens: 1 counted, 0 up to date, 1 failed" in ran.stderr
    summary = json.loads(ran.stdout)
    assert [one["status"] for one in summary["tokens"]] == ["counted", "failed"]
    (failure,) = summary["failures"]
    assert failure["kind"] == "tokens"
    assert "'fr'; there are en" in failure["error"]
    assert "b.json, byte 0, row 0" in failure["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tokenizer", "nope.model"), "The tokenizer does not exist"),
        (("--tokenizer", "en=nope.model"), "The tokenizer does not exist"),
        (("--prompt-format", "plain"), "needs --tokenizer"),
        (("--tokenizer", "{}/en.model", "--prompt-format", "nope"), "no prompt format 'nope'"),
        (("--tokenizer", "{}/en.model", "--prompt-format", "canary"), "no token <|endoftext|>"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_built(corpus, arguments, said):
    ran = index(corpus, *(one.format(corpus) for one in arguments))
    assert ran.exit_code == 2 or ran.exception is not None
    assert said in f"{ran.stderr} {ran.exception}"
    assert not (corpus / "x").exists()


def test_data_files_alone_have_no_tokens(corpus):
    ran = CliRunner().invoke(
        app,
        [
            "index",
            str(corpus / "a.json"),
            "--indexes-root",
            str(corpus / "x"),
            "--tokenizer",
            str(corpus / "en.model"),
        ],
    )
    assert ran.exit_code == 0
    assert "no tokens are counted" in ran.stderr


def test_a_file_whose_name_looks_like_languages_is_a_file(corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    write(corpus / "en=x,de=y", sentencepiece_bytes())
    assert parse_spec("en=x,de=y") == "en=x,de=y"
    assert parse_spec("en=x,fr=y") == {"en": "x", "fr": "y"}
    assert parse_spec("folder,more") == "folder,more"


def test_a_blend_that_is_measured_in_tokens_is_counted_as_its_loader_will_ask(tmp_path):
    from playhead.audio_tokens import AudioTokens
    from support.talk import FORMS, section, tokenizer

    entry = FORMS["multimodal_conversation"].write(tmp_path)
    options = section(entry, use_multimodal_sampling=True, batch_tokens=500)
    (tmp_path / "blend.yaml").write_text(json.dumps(options))
    spec = tokenizer(tmp_path)
    ran = index(tmp_path, "--tokenizer", spec, "--prompt-format", "llama3", "--json")
    assert ran.exit_code == 0, ran.stderr
    (told,) = json.loads(ran.stdout)["tokens"]
    (leaf,) = read_blend(tmp_path / "blend.yaml").leaves
    (pack,) = open_leaves([leaf], pack_dir=str(tmp_path / "x/playhead"))
    audio = AudioTokens.of_duration(80_000)
    found = find_token_columns(
        leaf, pack, Encoding(load_tokenizer(spec), "llama3", audio=audio).digest
    )
    assert found is not None
    assert told["tokens"] == found["tokens"].sum()
    assert (found["tokens"] == found["input"] + found["output"]).all()
    del options["token_equivalent_duration"]
    (tmp_path / "blend.yaml").write_text(json.dumps(options))
    ran = index(tmp_path, "--tokenizer", spec, "--prompt-format", "llama3")
    assert ran.exit_code == 1
    assert "nothing says how many tokens that takes" in ran.stderr
