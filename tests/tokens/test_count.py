"""Counts of every type of row are the lengths of what each sample becomes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.blend.leaf import ExtraField
from playhead.errors import ManifestError, StaleIndexError
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.count import TokenCounts, find_token_columns, open_token_columns
from playhead.tokens.encoding import Encoding
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.corpus import tarred_corpus
from support.leaves import make_leaf, read_examples
from support.shar import simple_cuts
from support.token_models import (
    ByLanguage,
    Words,
    hf_bytes,
    sentencepiece_bytes,
    sentences,
)
from support.token_rows import (
    cut_row,
    cuts_leaf,
    mixed_row,
    nemo_leaf,
    nemo_row,
    open_pack_of,
    write_rows,
)

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)
GERMAN = HuggingFaceTokenizer(hf_bytes("de"), None)
BOTH = AggregateTokenizer({"en": ENGLISH, "de": GERMAN})
TOKENIZERS = {
    "sentencepiece": ENGLISH,
    "tokenizers": GERMAN,
    "aggregate": BOTH,
    "own": load_tokenizer(Words()),
    "own by language": load_tokenizer(ByLanguage()),
}
words = st.sampled_from([*sentences(8), *sentences(8, "de"), "", "ü <unk> 你"])
languages = st.sampled_from(["en", "de"])
supervisions = st.lists(
    st.fixed_dictionaries({"language": languages}, optional={"text": words}), max_size=2
)


def counted(leaf, pack, encoding, **options):
    columns = open_token_columns(leaf, pack, encoding, **options)
    assert list(columns) == ["tokens"]
    assert columns["tokens"].dtype == np.uint32
    return columns["tokens"].tolist()


def expected(leaf, pack, encoding):
    return [encoding.num_tokens(encoding.encode(one)) for one in read_examples(leaf, pack)]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("prompt", [None, "plain"])
@settings(max_examples=15)
@given(
    rows=st.lists(
        st.fixed_dictionaries({"lang": languages}, optional={"text": words, "context": words}),
        min_size=1,
        max_size=8,
    ),
    embed=st.booleans(),
)
def test_rows_of_nemo(tmp_path_factory, name, prompt, rows, embed):
    folder = tmp_path_factory.mktemp("count")
    leaf = nemo_leaf(folder, [nemo_row(i, **row) for i, row in enumerate(rows)])
    pack = open_pack_of(leaf, folder, embed=embed)
    encoding = Encoding(TOKENIZERS[name], prompt)
    assert counted(leaf, pack, encoding) == expected(leaf, pack, encoding)


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("prompt", [None, "plain"])
@settings(max_examples=15)
@given(rows=st.lists(st.tuples(supervisions, supervisions, st.booleans()), min_size=1, max_size=5))
def test_cuts(tmp_path_factory, name, prompt, rows):
    folder = tmp_path_factory.mktemp("count")
    cuts = [
        mixed_row(i, cut_row(i, first), cut_row(i, second)) if mixed else cut_row(i, first)
        for i, (first, second, mixed) in enumerate(rows)
    ]
    if prompt is not None:
        # A prompt has one language: that of the first supervision.
        cuts = [cut_row(i, first or [{"language": "en"}]) for i, (first, _, _) in enumerate(rows)]
    leaf = cuts_leaf(folder, cuts)
    pack = open_pack_of(leaf, folder)
    encoding = Encoding(TOKENIZERS[name], prompt)
    assert counted(leaf, pack, encoding) == expected(leaf, pack, encoding)


def test_archives_are_not_read(tmp_path):
    _manifest, _tar = tarred_corpus(tmp_path, [0.1, 0.2, 0.1, 0.1, 0.1], 2)
    paths = [
        [tmp_path / f"{kind}_{i}.{end}" for i in range(2)]
        for kind, end in (("manifest", "json"), ("audio", "tar"))
    ]
    leaf = make_leaf("nemo_tarred", manifest=paths[0], tar=paths[1])
    pack = open_pack_of(leaf, tmp_path)
    for path in paths[1]:
        path.write_bytes(b"")
    for prompt in (None, "plain"):
        encoding = Encoding(TOKENIZERS["own"], prompt)
        assert counted(leaf, pack, encoding) == [2] * 5


def test_shar(tmp_path):
    from lhotse import CutSet
    from lhotse.shar import SharWriter

    from playhead.blend.leaf import Leaf

    cuts = simple_cuts(tmp_path / "wav", ["a", "b", "c"])
    for number, cut in enumerate(cuts):
        cut.context = "x " * number
    fields = {"recording": "wav", "context": "jsonl"}
    with SharWriter(str(tmp_path / "shar"), fields=fields, shard_size=2) as writer:
        (tmp_path / "shar").mkdir(exist_ok=True)
        for cut in CutSet.from_cuts(cuts):
            writer.write(cut)
    paths = {"shar": (str(tmp_path / "shar"),)}
    leaf = Leaf(key="shar", name="shar", type="lhotse_shar", weight=1, paths=paths)
    pack = open_pack_of(leaf, tmp_path)
    assert counted(leaf, pack, Encoding(TOKENIZERS["own"])) == [2, 2, 2]
    # What the shards of a field say is asked, too.
    assert counted(leaf, pack, Encoding(TOKENIZERS["own"], "plain")) == [2, 3, 4]


def test_tables(tmp_path):
    path = tmp_path / "t.json"
    rows = [{"text": "a " * i, "lang": "en", "out": i == 2} for i in range(5)]
    path.write_text(json.dumps(rows))
    leaf = make_leaf("table_for_tests", manifest=[path])
    pack = open_pack_of(leaf, tmp_path)
    for prompt in (None, "plain"):
        assert counted(leaf, pack, Encoding(TOKENIZERS["own"], prompt)) == [0, 1, 3, 4]


def test_a_persons_own_type(tmp_path):
    said = ["a b|en", "c|de", "d e f|en"]
    path = write_rows(tmp_path / "t.txt", [{"said": one} for one in said])
    leaf = make_leaf("lines_for_tests", manifest=[path])
    pack = open_pack_of(leaf, tmp_path)
    assert counted(leaf, pack, Encoding(BOTH)) == [
        len(BOTH.encode("a b", "en")),
        len(BOTH.encode("c", "de")),
        len(BOTH.encode("d e f", "en")),
    ]


def test_extra_fields_are_asked_and_noticed_when_they_change(tmp_path):
    lines = tmp_path / "asked.txt"
    lines.write_text("a\nb c\nd e f\n")
    leaf = replace(
        nemo_leaf(tmp_path, [nemo_row(i, text="we") for i in range(3)]),
        extra_fields=(ExtraField(type="text_iter", name="context", path=str(lines)),),
    )
    pack = open_pack_of(leaf, tmp_path)
    plain, prompt = Encoding(TOKENIZERS["own"]), Encoding(TOKENIZERS["own"], "plain")
    assert counted(leaf, pack, plain) == [1, 1, 1]
    assert counted(leaf, pack, prompt) == [2, 3, 4]
    lines.write_text("a a\nb c\nd e f\n")
    assert find_token_columns(leaf, pack, prompt.digest) is None
    assert counted(leaf, pack, prompt) == [3, 3, 4]


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    ("name", "prompt"), [("aggregate", None), ("own by language", None), ("aggregate", "plain")]
)
def test_workers_count_the_same(tmp_path, monkeypatch, workers, name, prompt):
    monkeypatch.setattr("playhead.tokens.jobs._ROWS", 16)
    monkeypatch.setattr("playhead.tokens.jobs._FEW_ROWS", 100)
    rows = [
        nemo_row(i, text=text, lang=("en", "de")[i % 2]) for i, text in enumerate(sentences(300))
    ]
    leaf = nemo_leaf(tmp_path, rows)
    pack = open_pack_of(leaf, tmp_path)
    encoding = Encoding(TOKENIZERS[name], prompt)
    told = []
    found = counted(leaf, pack, encoding, workers=workers, progress=lambda *said: told.append(said))
    assert found == expected(leaf, pack, encoding)
    assert told[-1] == ("leaf", 300, 300)
    assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})


@pytest.mark.parametrize("prompt", [None, "plain"])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_that_cannot_be_counted_are_named(tmp_path, monkeypatch, prompt, workers):
    monkeypatch.setattr("playhead.tokens.jobs._ROWS", 4)
    monkeypatch.setattr("playhead.tokens.jobs._FEW_ROWS", 8)
    rows = [nemo_row(i, text="we", lang="en") for i in range(20)]
    rows[13] = nemo_row(13, text="nous", lang="fr")
    rows[5] = nemo_row(5, lang="fr")
    leaf = nemo_leaf(tmp_path, rows)
    pack = open_pack_of(leaf, tmp_path)
    byte = int(pack.row_offset[13])
    with pytest.raises(ManifestError, match=rf"'fr'; there are en, de.*byte {byte}, row 13 c"):
        open_token_columns(leaf, pack, Encoding(BOTH, prompt), workers=workers)
    assert find_token_columns(leaf, pack, Encoding(BOTH, prompt).digest) is None
    assert not list(tmp_path.rglob("*.arrow"))


def test_rows_of_wrong_types_are_named(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(text="we"), nemo_row(text=["we"])])
    pack = open_pack_of(leaf, tmp_path)
    with pytest.raises(ManifestError, match=r"'text' is \['we'\].*m\.json, byte \d+, row 1"):
        open_token_columns(leaf, pack, Encoding(ENGLISH))


def test_rows_that_are_others_by_now_are_named(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(text="we"), nemo_row(text="us")])
    pack = open_pack_of(leaf, tmp_path)
    path = tmp_path / "m.json"
    path.write_bytes(path.read_bytes().replace(b"us", b"me"))
    with pytest.raises(StaleIndexError, match=r"m\.json.*row 1"):
        open_token_columns(leaf, pack, Encoding(ENGLISH))


def test_libraries_run_in_threads_and_python_does_not():
    assert TokenCounts(Encoding(BOTH)).runs_in_threads
    assert not TokenCounts(Encoding(BOTH, "plain")).runs_in_threads
    assert not TokenCounts(Encoding(TOKENIZERS["own"])).runs_in_threads
