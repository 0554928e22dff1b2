import json
import textwrap
from pathlib import Path

import pytest
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.index.arguments import discover
from playhead.index.discover import discover_config
from playhead.index.found import Discovery, merge, place
from support.corpus import write_tar


@pytest.fixture
def config(tmp_path):
    """Write a YAML file and return its path."""

    def write(text: str, name: str = "blend.yaml") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def named(found: Discovery) -> list[str]:
    return [f"{item.kind} {item.path}" for item in found.sidecars]


def find(path: str, **options) -> list[str]:
    return named(discover_config(path, **options))


def test_entries_of_the_three_types(config):
    path = config("""
        - type: nemo
          manifest_filepath: /d/a.json
        - type: nemo_tarred
          manifest_filepath: /d/m_OP_0..1_CL_.json
          tarred_audio_filepaths: /d/t_OP_0..1_CL_.tar
        - {type: lhotse, cuts_path: /d/cuts.jsonl, weight: 3}
    """)
    assert find(path) == [
        "jsonl /d/a.json",
        "jsonl /d/m0.json",
        "jsonl /d/m1.json",
        "nemo_tar /d/t0.tar",
        "nemo_tar /d/t1.tar",
        "jsonl /d/cuts.jsonl",
    ]


def test_lists_and_weights(config):
    path = config("""
        input_cfg:
        - type: nemo_tarred
          manifest_filepath: [[/d/a.json], [/d/b.json]]
          tarred_audio_filepaths: [[/d/a.tar, 0.3], [/d/b.tar, 2]]
        - type: nemo
          manifest_filepath: [/d/c.json, /d/d.json]
    """)
    assert [name.split("/")[-1] for name in find(path)] == [
        "a.json",
        "b.json",
        "a.tar",
        "b.tar",
        "c.json",
        "d.json",
    ]


def test_every_type_that_walks_by_keys(config):
    text = "\n".join(
        f"- {{type: {name}, input_cfg: [{{type: nemo, manifest_filepath: /d/{name}.json}}]}}"
        for name in (
            "group",
            "lhotse_as_conversation",
            "lhotse_concat",
            "s2s_duplex_reverse_role",
            "nemo_tarred_to_duplex",
        )
    )
    assert len(find(config(text))) == 5
    path = config("""
        - {type: nemo_sft_jsonl, paths: /d/sft.jsonl, language: en}
        - {type: txt_jsonl, paths: [/d/t.jsonl, /d/t.tar]}
        - {type: share_gpt, manifest_filepath: /d/s.jsonl, tarred_audio_filepaths: /d/s.tar}
        - {type: txt, paths: /d/plain.txt}
        - {type: parquet, manifest_filepath: /d/p.parquet}
        - {type: nemo, tarred_audio_filepaths: /d/alone.tar}
    """)
    assert find(path) == [
        "jsonl /d/sft.jsonl",
        "jsonl /d/t.jsonl",
        "nemo_tar /d/t.tar",
        "jsonl /d/s.jsonl",
        "nemo_tar /d/s.tar",
    ]


def test_unknown_types_are_said(config):
    path = config("""
        - {type: nemmo, manifest_filepath: /d/a.json}
        - {type: nemmo, manifest_filepath: /d/b.json}
    """)
    found = discover_config(path)
    assert found.sidecars == ()
    assert found.notes == ("2 entries of the unknown type 'nemmo': nothing is indexed for it",)


def test_a_whole_training_config(config):
    """Types of other things are no entries, and what they interpolate is not looked at."""
    path = config("""
        name: ${oc.env:NOBODY_HAS_THIS}
        model:
          tokenizer: {type: bpe, dir: "${nowhere}"}
          root: /data
          train_ds:
            manifest_filepath: /a/placeholder.json
            input_cfg:
            - {type: nemo, manifest_filepath: "${model.root}/train.json"}
          validation_ds:
            manifest_filepath: [/d/v1.json, /d/v2.json]
          test_ds:
            manifest_filepath: ???
          flat_ds:
            is_tarred: true
            manifest_filepath: /d/f.json
            tarred_audio_filepaths: /d/f.tar
          cuts_ds: {cuts_path: /d/cuts.jsonl, manifest_filepath: ""}
    """)
    found = discover_config(path)
    assert found.notes == ()
    assert named(found) == [
        "jsonl /data/train.json",
        "jsonl /d/v1.json",
        "jsonl /d/v2.json",
        "jsonl /d/f.json",
        "nemo_tar /d/f.tar",
        "jsonl /d/cuts.jsonl",
    ]
    assert find(path, section="model.validation_ds") == find(path, section="validation_ds")
    assert find(path, section="train_ds") == ["jsonl /data/train.json"]
    assert [blend.section for blend in found.blends] == [
        "model.train_ds",
        "model.validation_ds",
        "model.flat_ds",
        "model.cuts_ds",
    ]
    (blend,) = discover_config(path, section="train_ds").blends
    assert blend.section == "model.train_ds"
    with pytest.raises(ConfigError, match=r"valid_ds.*blend\.yaml.*train_ds"):
        find(path, section="valid_ds")


def test_references_are_relative_to_the_file_then_to_the_working_directory(
    config, tmp_path, monkeypatch
):
    config("- {type: nemo, manifest_filepath: /d/beside.json}", "sub/inner.yaml")
    config("- {type: nemo, manifest_filepath: /d/decoy.json}", "inner.yaml")
    config("- {type: nemo, manifest_filepath: /d/cwd.json}", "run/other.yaml")
    config("train_ds: {input_cfg: inner.yaml}", "sub/outer.yaml")
    path = config("""
        - {type: group, input_cfg: sub/outer.yaml}
        - {type: group, input_cfg: other.yaml}
    """)
    monkeypatch.chdir(tmp_path / "run")
    assert find(path) == ["jsonl /d/beside.json", "jsonl /d/cwd.json"]


def test_a_reference_to_nothing_names_both_files(config):
    path = config("- {type: group, input_cfg: gone.yaml}")
    with pytest.raises(SourceNotFoundError, match=r"gone\.yaml, named by .*blend\.yaml"):
        find(path)


def test_a_config_that_names_itself_is_refused(config):
    config("- {type: group, input_cfg: blend.yaml}", "b.yaml")
    path = config("- {type: group, input_cfg: b.yaml}")
    with pytest.raises(ConfigError, match="names itself"):
        find(path)


def test_data_blend_dir_reaches_nested_files(config):
    config('- {type: nemo, manifest_filepath: "${data_blend_dir}/a.json"}', "inner.yaml")
    path = config("""
        - {type: group, input_cfg: "${data_blend_dir}/inner.yaml"}
        - {type: nemo, manifest_filepath: "${data_blend_dir}/b.json"}
    """)
    folder = str(Path(path).parent)
    assert find(path, data_blend_dir=folder) == [
        f"jsonl {folder}/a.json",
        f"jsonl {folder}/b.json",
    ]
    with pytest.raises(ConfigError, match=r"data_blend_dir.*--data-blend-dir"):
        find(path)


def test_interpolated_entries(config):
    path = config("""
        shared:
          blend: [{type: nemo, manifest_filepath: "${root}/a.json"}]
          entry: {type: nemo, manifest_filepath: /d/b.json}
        root: /r
        train_ds: {input_cfg: "${shared.blend}"}
        valid_ds: {input_cfg: ["${shared.entry}"]}
    """)
    assert set(find(path)) == {"jsonl /r/a.json", "jsonl /d/b.json"}


def test_the_innermost_root_wins(config):
    path = config("""
        - {type: nemo, manifest_filepath: /d/a.json}
        - type: group
          indexes_root: /own
          input_cfg:
          - {type: nemo, manifest_filepath: /d/b.json}
          - {type: nemo, manifest_filepath: /d/c.json, indexes_root: null}
    """)
    found = discover_config(path, indexes_root="/given")
    assert [item.idx for item in found.sidecars] == [
        "/given/d/a.json.idx",
        "/own/d/b.json.idx",
        "/d/c.json.idx",
    ]


def test_shar(config, tmp_path):
    for name in ("cuts.000000.jsonl", "recording.000000.tar", "notes.txt", "cuts.0.jsonl.gz"):
        (tmp_path / "shar" / "sub").mkdir(parents=True, exist_ok=True)
        (tmp_path / "shar" / name).touch()
        (tmp_path / "shar" / "sub" / name).touch()
    path = config(f"""
        - {{type: lhotse_shar, shar_path: [[{tmp_path}/shar, 0.5]]}}
        - type: lhotse
          shar_path: {{cuts: /d/cuts_OP_0..1_CL_.jsonl, recording: /d/rec_OP_0..1_CL_.tar}}
        - {{type: lhotse_shar, shar_path: {tmp_path}/nowhere}}
    """)
    found = discover_config(path)
    assert named(found) == [
        f"jsonl {tmp_path}/shar/cuts.000000.jsonl",
        f"wds_tar {tmp_path}/shar/recording.000000.tar",
        "jsonl /d/cuts0.jsonl",
        "jsonl /d/cuts1.jsonl",
        "wds_tar /d/rec0.tar",
        "wds_tar /d/rec1.tar",
    ]
    (note,) = found.notes
    assert "cuts.0.jsonl.gz" in note
    (problem,) = found.problems
    assert problem.path == f"{tmp_path}/nowhere"
    assert isinstance(problem.error, SourceNotFoundError)


def test_webdataset(config, tmp_path):
    folder = tmp_path / "wds"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.tar").touch()
    (folder / "b.tar").touch()
    (folder / "extra.jsonl").touch()
    path = config(f"- {{type: share_gpt_webdataset, data_dir: {folder}}}")
    assert [name.removeprefix(str(folder)) for name in sorted(find(path))] == sorted(
        [f"jsonl {folder}/extra.jsonl", f"wds_tar {folder}/b.tar", f"wds_tar {folder}/deep/a.tar"]
    )
    (folder / "wids-meta.json").write_text(
        json.dumps({"shardlist": [{"url": "s_OP_0..1_CL_.tar"}]})
    )
    assert find(path) == [
        f"wds_tar {folder}/s0.tar",
        f"wds_tar {folder}/s1.tar",
        f"jsonl {folder}/extra.jsonl",
    ]
    (folder / "wids-meta.json").write_text("[]")
    (problem,) = discover_config(path).problems
    assert "no list of shards" in str(problem.error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", r"not valid YAML.*blend\.yaml:\d"),
        ("just words", "neither a list nor a mapping"),
        ("- {type: nemo, manifest_filepath: {a: b}}", r"is no path.*blend\.yaml: \[0\]"),
        ("- !!python/object/apply:os.system [ls]", "not valid YAML"),
    ],
)
def test_bad_configs_are_named(config, text, message):
    with pytest.raises(ConfigError, match=message):
        find(config(text))


def test_a_string_is_no_entry(config):
    (note,) = discover_config(config("- other.yaml")).notes
    assert "'other.yaml'" in note


def test_each_file_once(config, tmp_path):
    path = config("""
        - {type: nemo, manifest_filepath: /d/a.json}
        - {type: nemo, manifest_filepath: /d/a.json, weight: 2}
    """)
    found = discover([path, path])
    assert len(found.sidecars) == 1
    assert [(blend.config, blend.section) for blend in found.blends] == [(path, None)]


def test_two_files_with_one_index_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one, other in (("d/a.jsonl", "/d/a.jsonl"), ("s3://b/x.jsonl", "ais://b/x.jsonl")):
        found = [Discovery(sidecars=(place(path, "jsonl", "/indexes"),)) for path in (one, other)]
        with pytest.raises(ConfigError, match=f"{one} and {other}.*same index.*/indexes/"):
            merge(found)
    monkeypatch.chdir("/")
    merge([Discovery(sidecars=(place(path, "jsonl", "/indexes"),)) for path in ("d/a", "/d/a")])


def test_one_tar_with_two_layouts_is_refused():
    found = [
        Discovery(sidecars=(place("/d/a.tar", kind, None),)) for kind in ("nemo_tar", "wds_tar")
    ]
    with pytest.raises(ConfigError, match=r"/d/a\.tar is named as nemo_tar and as wds_tar"):
        merge(found)


def test_an_index_outside_its_root_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="outside"):
        place("../../x.jsonl", "jsonl", str(tmp_path / "root"))
    assert place("../../x.jsonl", "jsonl", None).idx == "../../x.jsonl.idx"


def test_arguments(config, tmp_path):
    (tmp_path / "m0.jsonl").touch()
    (tmp_path / "m1.jsonl").touch()
    write_tar(tmp_path / "nemo.tar", [("a.wav", b"1"), ("b.wav", b"1")])
    write_tar(tmp_path / "shar.tar", [("a.wav", b"1"), ("a.json", b"1")])
    (tmp_path / "broken.tar").write_bytes(b"x" * 600)
    names = ["m_OP_0..1_CL_.jsonl", "nemo.tar", "shar.tar", "broken.tar"]
    arguments = [str(tmp_path / name) for name in names]
    assert [name.replace(f"{tmp_path}/", "") for name in named(discover(arguments))] == [
        "jsonl m0.jsonl",
        "jsonl m1.jsonl",
        "nemo_tar nemo.tar",
        "wds_tar shar.tar",
        "nemo_tar broken.tar",
    ]
    assert {item.kind for item in discover(arguments, layout="shar").sidecars} == {
        "jsonl",
        "wds_tar",
    }
    (tmp_path / "manifest.json").touch()
    folder = discover([str(tmp_path)], layout="nemo")
    assert {item.kind for item in folder.sidecars} == {"jsonl", "nemo_tar"}
    assert f"jsonl {tmp_path}/manifest.json" in named(folder)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nowhere.jsonl", SourceNotFoundError, "no such file"),
        ("nowhere.yaml", SourceNotFoundError, "no such config"),
        ("a.txt", ConfigError, "neither a config nor data"),
        ("a.jsonl.gz", ConfigError, "compressed"),
    ],
)
def test_bad_arguments_are_named(tmp_path, name, error, message):
    if "nowhere" not in name:
        (tmp_path / name).touch()
    with pytest.raises(error, match=f"{message}.*{name}"):
        discover([str(tmp_path / name)])
    missing = pytest.raises(SourceNotFoundError, match=r"s3://b/a\.tar")
    with plugged_in(MemoryStore()), missing:
        discover(["s3://b/a.tar"])
