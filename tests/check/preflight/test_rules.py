"""Every rule sees what it is for, and is silent on a config that is nearly the same."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from playhead.check.preflight import indexes, launcher, space, storage
from playhead.check.preflight.reading import fault_rule
from playhead.check.preflight.rule import CannotRun, rules
from playhead.check.preflight.subject import open_subject
from playhead.errors import StorageError
from playhead.index.build import build_packs
from playhead.index.build_pace import Pace
from playhead.index.build_pack import PackSettings, plan_pack, write_plan
from playhead.index.build_scan import scan
from playhead.index.build_target import Target, leaf_sources
from playhead.index.source import Stamp
from playhead.storage import access
from support.corpus import write_jsonl, write_tar

BATCH = {"batch_size": 4, "num_workers": 2}


def section(*entries, **options):
    return {"train_ds": {**BATCH, **options, "input_cfg": list(entries)}}


def plain(corpus, **keys):
    return {"type": "nemo", "manifest_filepath": corpus["plain"], **keys}


def tarred(corpus, **keys):
    return {
        "type": "nemo_tarred",
        "manifest_filepath": corpus["manifests"],
        "tarred_audio_filepaths": corpus["tars"],
        **keys,
    }


def remote(scheme="ais", **keys):
    return {
        "type": "nemo_tarred",
        "manifest_filepath": f"{scheme}://bucket/manifest__OP_0..1_CL_.json",
        "tarred_audio_filepaths": f"{scheme}://bucket/audio__OP_0..1_CL_.tar",
        **keys,
    }


def talk(**keys):
    return {"type": "multimodal_conversation", "manifest_filepath": "talk.jsonl", **keys}


def whole(trainer=None, manager=None, **options):
    """A whole training config."""

    def made(corpus):
        config = section(tarred(corpus), **options)
        return {"trainer": trainer or {"max_steps": 9}, "exp_manager": manager or {}, **config}

    return made


def several(top=(), **parts):
    def made(corpus):
        given = {
            name: {"batch_size": 4, **own, **plain_keys(corpus)} for name, own in parts.items()
        }
        decided = {"multi_config": True, "seed": 0, "shuffle": True, **dict(top)}
        return {"train_ds": {**decided, **given}}

    return made


def plain_keys(corpus):
    return {"manifest_filepath": corpus["plain"]}


def of(entry=plain, options=(), **keys):
    """A section with one entry."""
    return lambda corpus: section(entry(corpus, **keys), **dict(options))


def opt(**options):
    """A section with options, over audio in tars."""
    return lambda corpus: section(tarred(corpus), **options)


def far(scheme="ais", options=(), **keys):
    return lambda corpus: section(remote(scheme, **keys), **dict(options))


GET_BATCH = {"USE_AIS_GET_BATCH": "true"}
SINGLE = {"USE_AIS_INDIVIDUAL_GETS": "True"}
AT_HOME = {"AIS_ENDPOINT": "http://127.0.0.1:9"}
TOKENS = {"use_multimodal_sampling": True, "batch_tokens": 100}
PACKED = {**TOKENS, "use_packed_sequence_sampling": True}
INDEXED = {"indexed": True, "indexes_root": "idx"}

# Rule: what it sees, a config that it sees it in, a near one that it is silent on. With each config
# the environment, where that matters.
CASES = {
    "config-refused": ("has to be at least 1", opt(batch_size=0), opt(batch_size=1)),
    "misspelt-key": ("`batch_duraton`", opt(batch_duraton=3), opt(batch_duration=3)),
    "unknown-keys": ("colour", opt(colour=3), of(colour="red")),
    "idle-options": ("max_tps is a list", opt(max_tps=[3, 4]), opt(max_tps=3)),
    "multi-config": (
        "no shuffle",
        several([("shuffle", None)], a={}, b={}),
        several(a={}, b={}),
    ),
    "config-note": ("wins over", of(options={"cuts_path": "x.jsonl"}), opt()),
    "other-sections": (
        "section validation_ds",
        lambda corpus: {**section(plain(corpus)), "validation_ds": plain_keys(corpus)},
        lambda corpus: {**section(plain(corpus)), "model": {"optim": {"lr": 1}}},
    ),
    "entry-type": ("'nemmo'", of(type="nemmo"), of()),
    "nemo-with-tars": ("and names tars", of(tarred, type="nemo"), of(tarred)),
    "source-missing": (
        "does not exist: /nowhere.json",
        of(manifest_filepath="/nowhere.json"),
        of(),
    ),
    "shard-pairing": (
        "1 of 3 manifests and 2 tars have no partner",
        lambda corpus: section(
            tarred(corpus, tarred_audio_filepaths=corpus["tars"].replace("0..2", "0..1"))
        ),
        of(tarred),
    ),
    "cut-map-fns": ("nothing calls it", of(cut_map_fns=["f"]), of(cut_map="f")),
    "compression-unknown": (
        "lz4, such as a.json.lz4",
        of(manifest_filepath="a.json.lz4"),
        of(manifest_filepath="a.json.gz"),
    ),
    "without-middle": (
        "3 compressed archives",
        lambda corpus: section(tarred(corpus, tarred_audio_filepaths="audio__OP_0..2_CL_.tar.gz")),
        of(tarred),
    ),
    "secret-in-path": (
        "https://…@h/manifest.json",
        of(manifest_filepath="https://me:secret@h/manifest.json"),
        of(manifest_filepath="https://h/manifest.json"),
    ),
    "listed-twice": (
        "2 times",
        lambda corpus: section(plain(corpus), plain(corpus)),
        lambda corpus: section(plain(corpus), tarred(corpus)),
    ),
    "weights": (
        "The weight -1",
        lambda corpus: section(plain(corpus, weight=-1), tarred(corpus, weight=1)),
        lambda corpus: section(plain(corpus, weight=0.5), tarred(corpus, weight=1)),
    ),
    "reweight-temperature": (
        "has 2 numbers, and input_cfg has 1 level",
        opt(reweight_temperature=[1, 0.5]),
        opt(reweight_temperature=[0.5]),
    ),
    "weight-zero": (
        "has the weight 0",
        lambda corpus: section(plain(corpus, weight=0), tarred(corpus, weight=1)),
        lambda corpus: section(plain(corpus, weight=0.01), tarred(corpus, weight=1)),
    ),
    "seed-drawn": ("drawn at a start", opt(seed="randomized"), opt(seed=7)),
    "finite-training": ("`force_finite` is true", opt(force_finite=True), opt()),
    "metadata-only": ("`metadata_only` is true", opt(metadata_only=True), opt()),
    "batch-limit": ("nothing limits", opt(batch_size=None), opt(batch_size=None, batch_duration=9)),
    "bins": (
        "without `bucket_duration_bins`",
        opt(bucket_batch_size=[3]),
        opt(bucket_batch_size=[3], bucket_duration_bins=[3.0]),
    ),
    "longer-than-bins": (
        "dropped",
        opt(bucket_batch_size=[3], bucket_duration_bins=[3.0], max_duration=4),
        opt(bucket_batch_size=[3], bucket_duration_bins=[3.0], max_duration=3),
    ),
    "longer-than-batch": (
        "9 s is above `batch_duration` 8 s",
        opt(batch_duration=8, max_duration=9),
        opt(batch_duration=9, max_duration=9),
    ),
    "packed-limit": (
        "is not set",
        opt(**PACKED),
        opt(**PACKED, max_tokens=100),
    ),
    "options-elsewhere": ("a list of entries", lambda corpus: [plain(corpus)], opt()),
    "units": ("30000 seconds", opt(max_duration=30000), opt(max_duration=30)),
    "no-workers": ("is 0", opt(num_workers=0), opt(num_workers=1)),
    "tokenizer": (
        "no tokenizer was given",
        opt(prompt_format="llama3"),
        opt(),
    ),
    "audio-tokens": (
        "neither",
        opt(**TOKENS),
        opt(**TOKENS, token_equivalent_duration=0.08),
    ),
    "prompt-format": (
        "no prompt format 'lama'",
        opt(prompt_format="lama"),
        opt(prompt_format="llama3"),
    ),
    "prompt-role": (
        "no role `system`",
        lambda corpus: section(talk(tags={"system_prompt": "Hm"}), prompt_format="plain"),
        lambda corpus: section(talk(tags={"system_prompt": "Hm"}), prompt_format="llama3"),
    ),
    "text-language": (
        "no `language`",
        lambda corpus: section({"type": "txt_jsonl", "paths": "a.jsonl"}),
        lambda corpus: section({"type": "txt_jsonl", "paths": "a.jsonl", "language": "de"}),
    ),
    "audio-placeholders": (
        "<sound> and <speech>",
        lambda corpus: section({"type": "share_gpt", "manifest_filepath": "a.jsonl"}),
        lambda corpus: section(
            {"type": "share_gpt", "manifest_filepath": "a.jsonl", "audio_placeholders": ["<a>"]}
        ),
    ),
    "text-field": ("has no 'answer'", of(text_field="answer"), of(text_field="text")),
    "indexes-root-unset": ("neither indexes_root", far("s3"), far("s3", indexes_root="idx")),
    "indexes-root-missing": (
        "nowhere does not exist",
        of(indexes_root="nowhere"),
        of(indexes_root="."),
    ),
    "indexes-root-local": (
        "each node has its own",
        of(indexes_root="/dev/shm/idx"),
        of(indexes_root="/mnt/shared/idx"),
    ),
    "indexes-root-remote": (
        "is not on a disk",
        of(indexes_root="s3://bucket/idx"),
        of(indexes_root="idx"),
    ),
    "index-shared": (
        "would have the same index",
        of(
            tarred,
            manifest_filepath=["s3://b/m.json", "gs://b/m.json"],
            tarred_audio_filepaths=None,
            type="nemo",
            indexes_root="idx",
        ),
        of(
            tarred,
            manifest_filepath=["s3://b/m.json", "s3://c/m.json"],
            tarred_audio_filepaths=None,
            type="nemo",
            indexes_root="idx",
        ),
    ),
    "index-missing": ("1 of 1 indexes", of(indexed=True), of()),
    "storage-scheme": ("nothing reads ftp://", far("ftp"), far("s3")),
    "ais-endpoint": ("is not set", far(), (far(), AT_HOME)),
    "ais-endpoint-idle": ("no path of the blend", (of(), AT_HOME), (far(), AT_HOME)),
    "ais-switch": (
        "is '1', which is not true",
        (of(), {"USE_AIS_GET_BATCH": "1"}),
        (of(), {"USE_AIS_GET_BATCH": "TRUE"}),
    ),
    "ais-get-batch-off": ("archives of leaf", far(), (far(), GET_BATCH)),
    "ais-get-batch-idle": ("nothing in the blend", (of(), GET_BATCH), (far(), GET_BATCH)),
    "ais-unverified": ("were not tried", (far(), GET_BATCH), far()),
    "ais-individual-idle": (
        "no effect",
        (far(), SINGLE),
        (far(), {**SINGLE, **GET_BATCH}),
    ),
    "ais-certificates": (
        "wins over AIS_CLIENT_CA",
        (far(), {"AIS_ENDPOINT": "https://h:1", "REQUESTS_CA_BUNDLE": "/a", "AIS_CLIENT_CA": "/b"}),
        (far(), {"AIS_ENDPOINT": "http://h:1", "REQUESTS_CA_BUNDLE": "/a", "AIS_CLIENT_CA": "/b"}),
    ),
    "remote-manifests": ("are remote", far(), of()),
    "mirror-roots": (
        "names nowhere, which is no folder",
        (far("s3"), {"LHOTSE_S3_LOCAL_MIRROR_ROOTS": "nowhere"}),
        (far("s3"), {"LHOTSE_S3_LOCAL_MIRROR_ROOTS": "."}),
    ),
    "checkpoint-interval": (
        "neither after a number of steps",
        whole(manager={"create_checkpoint_callback": True}),
        whole(manager={"checkpoint_callback_params": {"every_n_train_steps": 100}}),
    ),
    "resume-if-exists": (
        "`resume_if_exists` is not true",
        whole(manager={"resume_ignore_no_checkpoint": True}),
        whole(manager={"resume_if_exists": True, "resume_ignore_no_checkpoint": True}),
    ),
    "endless-training": (
        "the blend has no end",
        whole(trainer={"max_epochs": 3, "limit_train_batches": 1.0}),
        whole(trainer={"max_epochs": 3, "limit_train_batches": 1000}),
    ),
    "world-size": (
        "is 8, and WORLD_SIZE is 3",
        (opt(micro_batches_per_step=8), {"WORLD_SIZE": "3"}),
        (opt(micro_batches_per_step=8), {"WORLD_SIZE": "4"}),
    ),
}
# Rules on what no config alone can show; each has tests of its own below or elsewhere.
BY_THEMSELVES = {
    "cache-bytes",
    "cache-space",
    "empty-manifest",
    "fetch-audio",
    "fetch-data",
    "fetch-storage",
    "index-space",
    "index-stale",
    "index-time",
    "lhotse-version",
    "no-batch",
    "nodes-differ",
    "pack-damaged",
    "pack-missing",
    "pack-not-built",
    "pack-outdated",
    "pack-stale",
    "pack-undeclared",
    "pack-without-offsets",
    "server-ranges",
    "storage-extra",
    "tar-cut-short",
}


def test_every_rule_has_a_case():
    assert {one.id for one in rules()} == {*CASES, *BY_THEMSELVES}


@pytest.mark.parametrize("id_", CASES)
def test_a_rule_sees_what_it_is_for_and_nothing_else(id_, look, corpus):
    words, bad, _ = CASES[id_]
    bad, environment = bad if isinstance(bad, tuple) else (bad, {})
    seen = look(id_, bad(corpus), environment)
    assert seen, "it sees nothing"
    assert words in seen[0].saw
    assert seen[0].where


@pytest.mark.parametrize("id_", CASES)
def test_a_rule_is_silent_on_what_is_nearly_the_same(id_, look, corpus):
    _, _, good = CASES[id_]
    good, environment = good if isinstance(good, tuple) else (good, {})
    assert look(id_, good(corpus), environment) == []


@pytest.mark.parametrize(
    ("entry", "id_"),
    [
        ({"type": "nemo"}, "entry-type"),
        ({"type": "nemo", "manifest_filepath": []}, "config-refused"),
        ({"type": "nemo", "manifest_filepath": 5}, "config-refused"),
        ({"type": "nemo", "manifest_filepath": [["weight.json", 1], ["a.json"]]}, "weights"),
    ],
)
def test_what_is_refused_goes_by_what_was_wrong_whatever_things_are_called(
    place, corpus, entry, id_
):
    path = place / "all weights of an entry of type multi_config have paths.yaml"
    path.write_text(yaml.safe_dump(section(entry, plain(corpus))))
    subject = open_subject(
        str(path), section=None, data_blend_dir=None, tokenizer=None, environment={}
    )
    assert [fault_rule(fault) for fault in subject.faults] == [id_]


@pytest.mark.parametrize("limit", [{"batch_size": 2.5}, {"batch_duration": "long"}])
def test_a_limit_that_is_refused_is_not_missing_as_well(look, corpus, limit):
    config = section(plain(corpus), **{"batch_size": None, **limit})
    assert look("config-refused", config)
    assert not look("batch-limit", config)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_manifest_without_rows_is_named_and_a_leaf_of_such_ones_fails(
    look, subject_of, corpus, place, is_indexed
):
    tars = [write_tar(place / f"audio_{number}.tar", [("a.wav", b"A")]) for number in range(2)]
    row = {"audio_filepath": "a.wav", "duration": 1, "text": "x"}
    for full, severity in ((1, None), (0, "fail")):
        manifests = [
            write_jsonl(place / f"manifest_{number}.json", [row] * (full * number))
            for number in range(2)
        ]
        entry = {
            "type": "nemo_tarred",
            "manifest_filepath": [str(path) for path in manifests],
            "tarred_audio_filepaths": [str(path) for path in tars],
        }
        if is_indexed:
            build_packs([named.leaf for named in subject_of(section(entry)).leaves])
        [seen] = look("empty-manifest", section(entry))
        assert seen.saw.startswith(f"{2 - full} of 2 manifests")
        assert seen.saw.endswith(str(manifests[0]))
        assert seen.severity == severity
    unused, full = {**entry, "weight": 0}, tarred(corpus, weight=1)
    assert look("empty-manifest", section(unused, full))[0].severity is None


def test_a_plan_without_a_batch_is_refused_where_the_packs_are_there(look, subject_of, corpus):
    """The limits of a section are compared with what its packs say, as training does first."""
    config = section(tarred(corpus), min_duration=5)
    with pytest.raises(CannotRun, match="not all packs"):
        look("no-batch", config)
    build_packs([named.leaf for named in subject_of(config).leaves])
    [seen] = look("no-batch", config)
    assert "min_duration is 5 s and the durations" in seen.saw
    assert seen.advice == "Widen that limit, or give the leaf the weight 0"
    assert look("no-batch", section(tarred(corpus), min_duration=0.1)) == []
    # What limits a batch is asked by another rule.
    assert look("no-batch", section(tarred(corpus), batch_size=None)) == []


@pytest.mark.parametrize("left", [1000, 1024])
def test_an_archive_without_its_end_is_suspected_before_there_is_a_pack(look, place, left):
    tar = write_tar(place / "audio_0.tar", [("a.wav", b"A" * 2000)])
    entry = {
        "type": "nemo_tarred",
        "manifest_filepath": str(write_jsonl(place / "manifest_0.json", [{"a": 1}])),
        "tarred_audio_filepaths": str(tar),
    }
    assert look("tar-cut-short", section(entry)) == []
    os.truncate(tar, left)
    [seen] = look("tar-cut-short", section(entry))
    assert seen.saw.endswith(str(tar))


def test_an_indexes_root_that_is_a_file_fails(look, corpus):
    root = corpus["plain"]
    [seen] = look("indexes-root-missing", section(plain(corpus), indexes_root=root))
    assert (seen.severity, seen.saw) == ("fail", f"{root} is not a folder")


def test_changes_are_lines_of_a_diff(look, corpus):
    [seen] = look("nemo-with-tars", section(plain(corpus), tarred(corpus, type="nemo")))
    assert seen.where == "config.yaml: train_ds.input_cfg[1].type"
    assert seen.change == (
        "@@ config.yaml: train_ds.input_cfg[1] @@",
        "- type: nemo",
        "+ type: nemo_tarred",
    )
    [seen] = look("misspelt-key", section(plain(corpus), batch_duraton=3))
    assert seen.change == (
        "@@ config.yaml: train_ds @@",
        "- batch_duraton: 3",
        "+ batch_duration: 3",
    )
    [seen] = look("misspelt-key", section(plain(corpus, tarred_audio_filepath="x")))
    assert seen.change[1:] == ("- tarred_audio_filepath: x", "+ tarred_audio_filepaths: x")
    [seen] = look("entry-type", section(plain(corpus, type="nemmo")))
    assert seen.change[1:] == ("- type: nemmo", "+ type: nemo")


def test_a_change_in_a_file_that_the_config_names_is_one_of_that_file(look, place, corpus):
    (place / "inner.yaml").write_text(json.dumps([tarred(corpus, type="nemo")]))
    [seen] = look("nemo-with-tars", {**BATCH, "input_cfg": "inner.yaml"})
    assert seen.where == "inner.yaml: [0].type"
    assert seen.change[0] == "@@ inner.yaml: [0] @@"


def test_severities_depend_on_what_follows(look, corpus):
    at = {"indexes_root": "nowhere"}
    assert look("indexes-root-missing", section(plain(corpus, **at)))[0].severity is None
    assert (
        look("indexes-root-missing", section(plain(corpus, **at, indexed=True)))[0].severity
        == "fail"
    )
    texts = section({"type": "txt", "paths": "a.txt"})
    assert look("text-language", texts)[0].severity == "note"
    assert look("text-language", texts, tokenizer={"en": "a", "de": "b"})[0].severity == "fail"


def test_what_belongs_to_training_is_not_said_of_validation(look, corpus):
    options = {"metadata_only": True, "num_workers": 0, "force_finite": True}
    config = {"validation_ds": {**BATCH, **options, "input_cfg": [plain(corpus)]}}
    for id_ in ("metadata-only", "no-workers", "finite-training"):
        assert look(id_, config, section="validation_ds") == []


def test_a_whole_training_config_is_needed_for_what_is_said_of_trainers(look, corpus):
    for id_ in ("checkpoint-interval", "resume-if-exists", "endless-training"):
        with pytest.raises(CannotRun, match="no training section"):
            look(id_, section(tarred(corpus)))


def test_two_triggers_of_checkpoints_fail(look, corpus):
    manager = {
        "checkpoint_callback_params": {"every_n_train_steps": 5, "train_time_interval": "1:00"}
    }
    [seen] = look("checkpoint-interval", whole(manager=manager)(corpus))
    assert seen.severity == "fail"
    assert seen.change[1:] == ("- train_time_interval: '1:00'",)


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [("host:8080", "no http"), ("http://h:1/v1", "has a path"), ("http://h:1/", None)],
)
def test_endpoints_that_cannot_be_one(look, endpoint, words):
    seen = look("ais-endpoint", section(remote()), {"AIS_ENDPOINT": endpoint})
    assert [words in one.saw for one in seen] == [True][: words is not None]


def test_secrets_of_an_endpoint_are_not_said(look):
    [seen] = look("ais-endpoint", section(remote()), {"AIS_ENDPOINT": "http://me:secret@h:1/path"})
    assert "secret" not in "".join(map(str, seen))


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_other_stores_go_through_aistore_where_both_are_set(look, scheme):
    config = section(remote(scheme))
    assert look("ais-unverified", config, GET_BATCH) == []
    assert len(look("ais-unverified", config, {**GET_BATCH, **AT_HOME})) == 1
    assert look("ais-unverified", config, facts={"fetch": object()}) == []


def test_missing_and_old_libraries_of_stores(look, monkeypatch):
    versions = {"aistore": None, "obstore": (0, 8)}
    monkeypatch.setattr(storage, "_installed", versions.get)
    [seen] = look("storage-extra", section(remote("ais")))
    assert "aistore is not installed" in seen.saw
    assert "playhead[ais]" in seen.advice
    assert look("storage-extra", section(remote("s3"))) == []
    versions["obstore"] = (0, 7)
    monkeypatch.setattr(storage, "version", lambda _: "0.7.1")
    [seen] = look("storage-extra", section(remote("s3")))
    assert "obstore is 0.7.1, below 0.8" in seen.saw


def test_old_lhotse(look, corpus, monkeypatch):
    assert look("lhotse-version", section(plain(corpus))) == []
    monkeypatch.setattr(launcher, "version", lambda _: "1.32.2")
    [seen] = look("lhotse-version", section(plain(corpus)))
    assert seen.saw == "Lhotse 1.32.2 is installed"


def built(subject, **options):
    """Build the packs of all leaves, and return their paths."""
    results = build_packs([named.leaf for named in subject.leaves], **options)
    assert [result.error for result in results] == [None] * len(results)
    return [Path(result.path) for result in results]


def copy_of(corpus, place):
    """A copy of the plain corpus that a test may change."""
    manifest = place / "copy.json"
    manifest.write_bytes(Path(corpus["plain"]).read_bytes())
    return section({"type": "nemo", "manifest_filepath": str(manifest)}), manifest


def test_packs_that_are_missing_fresh_outdated_and_damaged(look, subject_of, corpus, place):
    config, manifest = copy_of(corpus, place)
    assert "1 packs are not built" in look("pack-not-built", config)[0].saw
    [pack] = built(subject_of(config))
    for id_ in ("pack-not-built", "pack-outdated", "pack-damaged"):
        assert look(id_, config) == []
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    write_jsonl(manifest, rows[:-1])
    [seen] = look("pack-outdated", config)
    assert seen.where == "config.yaml: train_ds.input_cfg[0].manifest_filepath"
    assert seen.advice.startswith("Run `playhead index config.yaml`")
    pack.write_bytes(b"ARROW1\0\0nonsense")
    assert len(look("pack-damaged", config)) == 1


def test_an_idx_whose_sentinel_is_not_the_size_of_its_file_is_stale(look, corpus, place):
    config, manifest = copy_of(corpus, place)
    config["train_ds"]["indexed"] = True
    size = manifest.stat().st_size
    idx = Path(f"{manifest}.idx")
    for entries, words in (
        ([0, size], None),
        ([0, size - 1], f"had {size - 1} bytes; it has {size} now"),
    ):
        idx.write_bytes(b"".join(number.to_bytes(8, "little") for number in entries))
        seen = look("index-stale", config)
        assert [words in one.saw for one in seen] == [True][: words is not None]
    assert seen[0].advice == "Run `playhead index --force config.yaml`"
    idx.write_bytes(b"123")
    assert "not whole entries" in look("index-stale", config)[0].saw
    assert look("index-missing", config) == []


def test_tars_need_no_offsets_where_batches_are_requested(look, corpus):
    config = section(tarred(corpus, indexed=True))
    assert "6 of 6 indexes" in look("index-missing", config)[0].saw
    assert "3 of 3 indexes" in look("index-missing", config, GET_BATCH)[0].saw


def test_hours_of_indexing_are_refused_unless_they_are_asked_for(look, corpus, monkeypatch):
    config = section(plain(corpus))
    assert look("index-time", config) == []
    monkeypatch.setattr(indexes, "PATIENCE_SECONDS", 1e-9)
    assert len(look("index-time", config)) == 1
    assert look("index-time", section(plain(corpus), auto_index=True)) == []


def test_declared_packs(look, subject_of, corpus, place):
    config, manifest = copy_of(corpus, place)
    [pack] = built(subject_of(config))
    entry = config["train_ds"]["input_cfg"][0]
    entry["index_pack"] = str(pack)
    [seen] = look("pack-undeclared", config)
    assert "`indexed` is not true" in seen.saw
    entry["indexed"] = True
    for id_ in ("pack-undeclared", "pack-missing", "pack-stale", "pack-without-offsets"):
        assert look(id_, config) == []
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    [seen] = look("pack-stale", config)
    assert "bytes and has" in seen.saw
    entry["index_pack"] = str(place / "gone.idxpack")
    [seen] = look("pack-missing", config)
    assert seen.where == "config.yaml: train_ds.input_cfg[0].index_pack"
    assert seen.advice == f"Run `playhead pack -o {place / 'gone.idxpack'} config.yaml`"


def test_a_pack_of_other_leaves_is_bound_to_these_or_built_again(look, subject_of, corpus):
    [pack] = built(subject_of(section(plain(corpus))))
    [seen] = look("pack-missing", section(tarred(corpus, indexed=True, index_pack=str(pack))))
    assert "audio__OP_0..2_CL_.tar" in seen.saw or "manifest" in seen.saw
    assert f"({corpus['plain']})" in seen.saw
    assert f"playhead pack --rebind {pack} -o NEW config.yaml" in seen.advice
    assert f"playhead pack --overwrite -o {pack} config.yaml" in seen.advice


def test_a_list_of_entries_is_asked_for_no_options(look, corpus):
    config = [plain(corpus)]
    for id_ in ("batch-limit", "no-workers"):
        assert look(id_, config) == []
        assert look(id_, {"input_cfg": config})
    [seen] = look("indexes-root-unset", [remote("s3")])
    assert seen.change == ()


def test_data_that_fit_on_the_disk_may_have_any_cache(look, monkeypatch):
    config = section(remote("s3"), locality="shards")
    monkeypatch.setattr(space, "_free", lambda _: (7 << 30) + 12345)
    for size, change in ((1 << 30, None), (2 << 30, "+ cache_bytes: 6442450944")):
        monkeypatch.setattr(space, "stamps", lambda paths, size=size: [Stamp(size, 0)] * len(paths))
        seen = look("cache-space", config)
        assert [one.change[-1] for one in seen] == ([] if change is None else [change])


def test_packs_without_offsets_need_batch_requests(look, subject_of, corpus, place):
    config = section(tarred(corpus, indexed=True))
    pack = str(place / "bare.idxpack")
    entry = config["train_ds"]["input_cfg"][0]
    for has_offsets in (True, False):
        leaves = [leaf_sources(named.leaf) for named in subject_of(section(tarred(corpus))).leaves]
        target = Target(path=Path(pack), members=leaves)
        plan = plan_pack(target, None, PackSettings(has_offsets=has_offsets))
        write_plan(plan, map(scan, plan.tasks), Pace(None, ""))
        found = look("pack-without-offsets", section({**entry, "index_pack": pack}))
        assert len(found) == (0 if has_offsets else 1)
    assert (
        found[0].saw
        == f"the pack {pack} has no offsets of members, and USE_AIS_GET_BATCH is not true"
    )
    assert look("pack-without-offsets", section({**entry, "index_pack": pack}), GET_BATCH) == []


def test_room_on_disks(look, corpus, place, monkeypatch):
    config = section(tarred(corpus))
    assert look("index-space", config) == []
    monkeypatch.setattr(space, "_free", lambda _: 10)
    [seen] = look("index-space", config)
    assert seen.saw.startswith("10.0 bytes are free at ")


def test_caches_that_do_not_fit(look, corpus, place, monkeypatch):
    for number in range(3):
        write_tar(place / f"audio_{number}.tar.gz", [])
    entry = tarred(corpus, tarred_audio_filepaths="audio__OP_0..2_CL_.tar.gz")
    [seen] = look("cache-bytes", section(entry, cache_bytes=1000))
    assert re.search(r"`cache_bytes` is 1,000, and .*tar.gz has [\d,]+ bytes", seen.saw)
    assert look("cache-bytes", section(entry)) == []
    # Local files are read where they are.
    assert look("cache-bytes", section(tarred(corpus), locality="shards", cache_bytes=1000)) == []
    monkeypatch.setattr(space, "_free", lambda _: 1 << 30)
    [seen] = look("cache-space", section(entry))
    assert "1.0 GiB are free" in seen.saw
    assert look("cache-space", section(entry, cache_bytes=1 << 20)) == []
    assert look("cache-space", section(tarred(corpus))) == []


def test_servers_without_ranges(look, monkeypatch):
    asked = []

    def has_ranges(uri):
        asked.append(uri)
        if "gone" in uri:
            raise StorageError("no answer")
        return "good" in uri

    monkeypatch.setattr(access, "has_ranges", has_ranges)
    entries = [remote("https", manifest_filepath=f"https://{host}/manifest__OP_0..1_CL_.json",
                      tarred_audio_filepaths=f"https://{host}/audio__OP_0..1_CL_.tar")
               for host in ("good", "gone", "me:pass@bad")]  # fmt: skip
    [seen] = look("server-ranges", section(*entries))
    assert seen.saw.startswith("the server bad answers with whole files")
    assert len(asked) == 3
    [seen] = look("server-ranges", section(*entries, locality="rows"))
    assert seen.severity == "fail"
    assert look("server-ranges", section(entries[0])) == []


def test_a_pipe_is_read_whole(look, corpus):
    entry = tarred(corpus, tarred_audio_filepaths=["pipe:cat a_audio_0.tar", "b", "c"])
    [seen] = look("without-middle", section(entry))
    assert "1 pipes" in seen.saw
    [seen] = look("without-middle", section(entry, locality="rows"))
    assert seen.severity == "fail"
    assert seen.change[1:] == ("- locality: rows", "+ locality: shards")


def test_every_place_of_the_environment_is_read_when_it_is_asked(subject_of, corpus):
    assert subject_of(section(plain(corpus))).environment is os.environ
