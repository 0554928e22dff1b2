from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.blend.entry import Remarks, read_entry
from playhead.blend.transforms import TRANSFORMS
from playhead.config import Spot
from playhead.errors import ConfigError, UnknownOptionError

WHERE = Spot("blend.yaml", ("input_cfg", 2))
NEMO = {"type": "nemo", "manifest_filepath": "m.json"}


def read(entry, *, strict=False):
    return read_entry(entry, WHERE, Remarks(strict=strict))


def test_an_entry():
    entry = read(
        {
            **NEMO,
            "weight": 0.5,
            "tags": {"task": "asr"},
            "name": "mine",
            "corpus": "libri",
            "hours": 960.0,
            "clean": True,
            "speakers": ["a", "b"],
            "nothing": None,
            "text_field": "transcript",
            "indexed": "true",
        }
    )
    assert entry.type == "nemo"
    assert entry.weight == 0.5
    assert entry.tags == {"task": "asr"}
    assert entry.name == "mine"
    assert entry.labels == {
        "corpus": "libri",
        "hours": "960.0",
        "clean": "true",
        "speakers": '["a", "b"]',
    }
    assert entry.options == {"text_field": "transcript", "indexed": True}
    assert entry.specs == {"manifest": "m.json"}
    assert entry.children is None


def test_tars_make_a_nemo_tarred():
    tarred = {"manifest_filepath": "m", "tarred_audio_filepaths": "t"}
    one, two = (read({"type": type_, **tarred}) for type_ in ("nemo", "nemo_tarred"))
    assert one == two
    assert one.type == "nemo_tarred"
    assert one.specs == {"manifest": "m", "tar": "t"}
    assert read({**NEMO, "tarred_audio_filepaths": None}).type == "nemo"
    assert read({**NEMO, "tarred_audio_filepaths": "???"}).type == "nemo"


@pytest.mark.parametrize("type_", sorted(TRANSFORMS))
@pytest.mark.parametrize(
    "inner",
    [
        {"input_cfg": [NEMO]},
        {"manifest_filepath": "m.json"},
        {"manifest_filepath": "m", "tarred_audio_filepaths": "t"},
        {"cuts_path": "c.jsonl"},
        {"shar_path": "s"},
    ],
)
def test_a_transform_holds_entries_or_names_the_files_of_one(type_, inner):
    own = dict.fromkeys(TRANSFORMS[type_].own, 3)
    entry = read({"type": type_, "weight": 2, "tags": {"context": "c"}, **inner, **own})
    assert entry.transform == (type_, own)
    assert entry.own == {}
    assert entry.specs == {}
    assert entry.tags == {"context": "c"}
    (child,) = entry.children
    assert read(child).type in ("nemo", "nemo_tarred", "lhotse", "lhotse_shar")


def test_a_transform_of_nothing():
    said = "of type `sqa_as_conversation` names no data .* Add `input_cfg`, `cuts_path`"
    with pytest.raises(ConfigError, match=said):
        read({"type": "sqa_as_conversation"})


def test_defaults_of_a_transform_are_its_options():
    entry = read({"type": "s2s_as_conversation", "cuts_path": "c.jsonl"})
    assert entry.transform is not None
    assert entry.transform.options == TRANSFORMS["s2s_as_conversation"].own


@pytest.mark.parametrize(
    ("entry", "specs"),
    [
        ({"type": "txt", "paths": "a.txt", "language": "en"}, {"text": "a.txt"}),
        (
            {"type": "txt_pair", "source_paths": "a", "target_paths": "b", "source_language": "de"},
            {"source": "a", "target": "b"},
        ),
        ({"type": "nemotron_text_converation", "paths": ["a", "b"]}, {"text": ["a", "b"]}),
        (
            {"type": "share_gpt", "manifest_filepath": "m", "audio_placeholders": "<a>"},
            {"manifest": "m"},
        ),
        ({"type": "share_gpt_webdataset", "data_dir": "d"}, {"data_dir": "d"}),
        (
            {"type": "multi_speaker_simulator", "manifest_filepath": "m", "max_duration": 30},
            {"manifest": "m"},
        ),
    ],
)
def test_texts_conversations_and_mixtures(entry, specs):
    found = read(entry)
    assert found.specs == specs
    own = {key: value for key, value in entry.items() if key in found.own}
    assert found.own.items() >= own.items()
    assert found.labels == {}
    assert found.options == {}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"manifest_filepath": "m"}, r"has no type \(blend.yaml: input_cfg\[2\]\). Give it one"),
        ({"typ": "nemo"}, "has no type .* Write `type` for `typ`"),
        ({"type": "nemoo"}, "type 'nemoo' is not known .* Write `nemo`"),
        ({"type": "lhoste"}, "type 'lhoste' is not known .* Write `lhotse`"),
        ({"type": "share-gpt"}, "type 'share-gpt' is not known .* Write `share_gpt`"),
        (
            {"type": "webdataset"},
            r"is not known .* Use one of .*group, lhotse, lhotse_as_conversation, lhotse_concat",
        ),
        ({"type": 5}, "type 5 is not known"),
        ({"type": ["nemo"]}, r"type \['nemo'\] is not known"),
        ("more.yaml", 'entry of a blend is "more.yaml", and has to be a mapping'),
        (["x"], r"entry of a blend is \[\"x\"\]"),
        (None, "entry of a blend is null"),
        ({"type": "nemo"}, "of type `nemo` has no `manifest_filepath`"),
        ({"type": "lhotse"}, "of type `lhotse` has no `cuts_path`"),
        (
            {"type": "nemo_tarred", "manifest_filepath": "m"},
            "of type `nemo_tarred` has no `tarred_audio_filepaths`",
        ),
        ({**NEMO, "cuts_path": "c"}, "`cuts_path` does not belong to an entry of type `nemo`"),
        ({**NEMO, "input_cfg": [NEMO]}, "`input_cfg` does not belong to an entry of type `nemo`"),
        (
            {"type": "group", "input_cfg": [NEMO], "manifest_filepath": "m"},
            "`manifest_filepath` does not belong to an entry of type `group`",
        ),
        ({**NEMO, "tags": ["a"]}, r"tags are \[\"a\"\], and have to be a mapping .*\[2\].tags"),
        ({**NEMO, "tags": {1: 2}}, "tags are .* have to be a mapping"),
        ({**NEMO, "name": 5}, "name 5 is not a text"),
        ({**NEMO, "name": " "}, "name .* is not a text"),
        ({**NEMO, "text_field": 5}, r"`text_field` is 5.*input_cfg\[2\].text_field"),
        ({**NEMO, "indexed": "perhaps"}, "`indexed` is 'perhaps'"),
        ({**NEMO, "input_sampling_rate": 0}, "`input_sampling_rate` is 0"),
    ],
)
def test_impossible_entries(entry, said):
    with pytest.raises(ConfigError, match=said):
        read(entry)


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("tarred_audio_filepath", "tarred_audio_filepaths"),
        ("manifest_filepaths", "manifest_filepath"),
        ("manifest_path", "manifest_filepath"),
        ("weigth", "weight"),
        ("weights", "weight"),
        ("tag", "tags"),
        ("nam", "name"),
        ("text_feild", "text_field"),
        ("indexed_root", "indexes_root"),
        ("index_root", "indexes_root"),
        ("input_config", None),
        ("shar_paths", "shar_path"),
        ("extra_field", "extra_fields"),
        ("input_sample_rate", None),
    ],
)
def test_slips_are_errors_that_name_what_was_meant(slip, meant):
    if meant is None:
        assert slip in read({**NEMO, slip: "x"}).labels
        return
    with pytest.raises(UnknownOptionError, match=rf"`{slip}` is not known, but `{meant}` is"):
        read({**NEMO, slip: "x"})


LABELS = [
    "accent",
    "age",
    "audio_format",
    "bitrate",
    "channel",
    "clean",
    "codec",
    "comment",
    "corpus",
    "country",
    "data_dir",
    "dataset",
    "date",
    "description",
    "dialect",
    "domain",
    "duration",
    "fields",
    "gender",
    "group",
    "height",
    "hours",
    "id",
    "index",
    "kind",
    "lang",
    "language",
    "level",
    "license",
    "locale",
    "mode",
    "noise",
    "note",
    "notes",
    "num_hours",
    "num_shards",
    "origin",
    "owner",
    "part",
    "path",
    "pnc",
    "priority",
    "quality",
    "question",
    "rate",
    "root",
    "sampling_rate",
    "set",
    "shards",
    "size",
    "snr",
    "source",
    "source_lang",
    "speaker",
    "speakers",
    "speech",
    "speed",
    "split",
    "stage",
    "style",
    "subset",
    "target_lang",
    "task",
    "taskname",
    "text",
    "tier",
    "title",
    "topic",
    "url",
    "use_start_end_token",
    "validated",
    "version",
    "voice",
    "year",
]


@pytest.mark.parametrize("label", LABELS)
def test_labels_that_people_use_are_not_taken_for_slips(label):
    assert read({**NEMO, label: "x"}).labels == {label: "x"}


def test_strict_makes_errors_of_labels():
    with pytest.raises(UnknownOptionError, match="keys `corpus`, `language` are not known"):
        read({**NEMO, "corpus": "x", "language": "y"}, strict=True)
    assert read({**NEMO, "weight": 1, "tags": {}}, strict=True).specs == {"manifest": "m.json"}


def test_options_of_a_section_are_remarked_once():
    remarks = Remarks()
    for value in (1, 2):
        read_entry({**NEMO, "shuffle": True, "max_duration": value}, WHERE, remarks)
    said = "options that have no effect in an entry, but in its section: shuffle, max_duration"
    assert remarks.notes() == [said]
    assert Remarks().notes() == []


LINES = {"type": "text_iter", "name": "extra", "path": "lines.txt"}


def test_extra_fields():
    entry = read({**NEMO, "extra_fields": [LINES, {**LINES, "type": "text_sample", "name": "b"}]})
    assert [(f.type, f.name, f.path) for f in entry.extra_fields] == [
        ("text_iter", "extra", "lines.txt"),
        ("text_sample", "b", "lines.txt"),
    ]
    for wrong in (
        [{"type": "text_iter"}],
        LINES,
        [{**LINES, "type": "audio"}],
        [{**LINES, "x": 1}],
    ):
        with pytest.raises(ConfigError, match=r"extra fields .* have no known form"):
            read({**NEMO, "extra_fields": wrong})


@pytest.mark.parametrize("names", [["a", "a"], ["text"], ["duration"], ["b", "audio_filepath"]])
def test_extra_fields_have_names_of_their_own(names):
    with pytest.raises(ConfigError, match="each name comes once"):
        read({**NEMO, "extra_fields": [{**LINES, "name": name} for name in names]})


def test_extra_fields_are_for_rows():
    with pytest.raises(ConfigError, match=r"`extra_fields` does not belong .* `group`"):
        read({"type": "group", "input_cfg": [NEMO], "extra_fields": [LINES]})


def test_shar_in_all_its_forms():
    for spec in ("folder", ["a", "b"], [["a", 2], ["b", 1]]):
        assert read({"type": "lhotse_shar", "shar_path": spec}).specs == {"shar": spec}
    fields = {"recording": "recording.{0..1}.tar", "cuts": "cuts.{0..1}.jsonl"}
    specs = read({"type": "lhotse_shar", "shar_path": fields}).specs
    assert specs == fields
    assert next(iter(specs)) == "cuts"
    with pytest.raises(ConfigError, match="names recording and not the cuts"):
        read({"type": "lhotse_shar", "shar_path": {"recording": "r.tar"}})


def test_the_options_of_one_type_alone():
    entry = read({"type": "parquet", "manifest_filepath": "a.parquet", "audio_field": "wav"})
    assert entry.own == {
        "audio_field": "wav",
        "duration_field": "duration",
        "id_field": "id",
        "sampling_rate": None,
    }
    assert entry.specs == {"parquet": "a.parquet"}
    assert entry.labels == {}
    with pytest.raises(UnknownOptionError, match="audio_feild"):
        read({"type": "parquet", "manifest_filepath": "a.parquet", "audio_feild": "wav"})


def test_concatenation():
    inner = [NEMO]
    entry = read({"type": "lhotse_concat", "max_duration": 2.5, "input_cfg": inner})
    assert (entry.concatenation.max_duration, entry.concatenation.gap) == (2.5, 0.0)
    assert entry.children == inner
    direct = read({"type": "lhotse_concat", "max_duration": 5, "gap": 0.5, "cuts_path": "c.jsonl"})
    assert direct.children == [{"type": "lhotse", "cuts_path": "c.jsonl"}]
    assert direct.specs == {}
    for wrong in ({}, {"max_duration": 0}, {"max_duration": "x"}, {"max_duration": 5, "gap": -1}):
        with pytest.raises(ConfigError, match="`gap`" if "gap" in wrong else "`max_duration`"):
            read({"type": "lhotse_concat", "input_cfg": inner, **wrong})
    with pytest.raises(ConfigError, match="names no data"):
        read({"type": "lhotse_concat", "max_duration": 5})


@given(
    st.dictionaries(
        st.sampled_from(["type", "weight", "tags", "name", "input_cfg", "cuts_path", "corpus"])
        | st.text("abt_", max_size=4),
        st.none() | st.booleans() | st.text("ne", max_size=3) | st.lists(st.integers(), max_size=2),
    )
)
def test_whatever_an_entry_is_nothing_but_a_config_error_comes_of_it(entry):
    try:
        read({"type": "nemo", **entry})
    except ConfigError as error:
        assert "blend.yaml: input_cfg[2]" in str(error)  # noqa: PT017  (some are fine)
