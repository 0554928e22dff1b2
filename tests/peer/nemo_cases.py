"""Configs that NeMo and Playhead both read, and how their answers may differ."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from peer.nemo_rules import (
    ROOT,
    OfChannel,
    Rule,
    Truncated,
    of_a_mixture,
    of_blends,
    of_joined,
    of_late_rows,
    of_members,
    of_new_cuts,
    of_numbers,
    of_plain_rows,
    of_rows_with_rates,
    of_table_rows,
    of_translated_rows,
    of_whole_members,
    of_windows,
    same,
)
from peer.nemo_talk import MODEL, resolved, talk_configs
from peer.nemo_talk_rules import OF_TALK
from peer.nemo_talk_rules import TARRED as TARRED_TALK
from peer.nemo_talk_rules import of_windows as of_talk_windows
from support.ten_cuts import Corpus

TARRED = frozenset({"manifest_origin", "tar_origin"})
SHAR = frozenset({"shard_origin", "shar_epoch"})


@dataclass(frozen=True, kw_only=True)
class Case:
    """One config, and what NeMo makes of each sample of ours."""

    config: dict[str, Any]
    tokenizer: str | dict[str, str] | None = None
    expected: Rule = same
    """From what Playhead gives of a sample to what NeMo gives of it."""
    provenance: frozenset[str] = frozenset()
    """Fields that NeMo adds to say where a cut is from."""
    ours: dict[str, Any] | None = None
    """The config that Playhead reads in its place."""
    refusal: str | None = None
    """What NeMo says where it cannot read what Playhead reads."""

    def below(self, root: Path) -> dict[str, Any]:
        """The config and the tokenizer, with the folder of the corpora in them."""
        config = resolved(self.config, root / "talk")
        data = {"config": config, "tokenizer": self.tokenizer, "ours": self.ours}
        return json.loads(json.dumps(data).replace(ROOT, str(root)))


def corpus_in(name: str) -> Corpus:
    """Where `support.ten_cuts.make` puts its files."""
    folder = Path(ROOT) / name
    return Corpus(
        folder=folder,
        cuts=folder / "cuts.jsonl",
        manifest=folder / "manifest.json",
        aggregate=folder / "tarred_audio_manifest.json",
        manifests=str(folder / "manifest__OP_0..1_CL_.json"),
        tars=str(folder / "audio__OP_0..1_CL_.tar"),
        shar=folder / "shar",
    )


CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "truncated": {"truncate_duration": 0.5, "truncate_offset_type": "start"},
    "truncated at the end": {"truncate_duration": 0.5, "truncate_offset_type": "end"},
    "windows": {"cut_into_windows_duration": 0.5},
    "overlapping windows": {
        "cut_into_windows_duration": 0.6,
        "cut_into_windows_hop": 0.25,
        "keep_excessive_supervisions": False,
    },
    "padded": {"pad_min_duration": 1.0},
    "padded on the left": {"pad_min_duration": 1.0, "pad_direction": "left"},
    "padded on both sides": {"pad_min_duration": 1.0, "pad_direction": "both"},
    "lengths": {"min_duration": 0.7, "max_duration": 1.3},
    "all of these": {
        "truncate_duration": 1.2,
        "truncate_offset_type": "start",
        "cut_into_windows_duration": 0.5,
        "pad_min_duration": 0.4,
        "min_duration": 0.3,
    },
    "resampled": {"sample_rate": 8000},
    "joined": {
        "concatenate_samples": True,
        "concatenate_duration_factor": 2.0,
        "db_norm": None,
    },
}


def of_forms() -> dict[str, Case]:
    """Ten cuts in every form, with what each option makes of them, and with two channels."""
    ten, two = corpus_in("ten"), corpus_in("two")
    rules = {"nemo": of_plain_rows, "tarred": of_members, "aggregate": of_members}
    added = {"tarred": TARRED, "aggregate": TARRED, "shar": SHAR}
    cases = {}
    for form in ("cuts", "nemo", "tarred", "aggregate", "shar"):
        rule, where = rules.get(form, same), added.get(form, frozenset())
        for name, change in CHANGES.items():
            if change and form not in ("cuts", "tarred"):
                continue
            changed = rule
            if "truncate_duration" in change:
                changed = Truncated(rule, change["truncate_duration"])
            elif "concatenate_samples" in change:
                changed = of_joined
            cases[f"{form}, {name}"] = Case(
                config={**ten.flat(form), **change},
                expected=changed,
                provenance=where,
            )
        for channel in (None, 0, 1):
            cases[f"{form}, channel {channel}"] = Case(
                config={**two.flat(form), "channel_selector": channel},
                expected=rule if channel is None else OfChannel(rule, channel),
                provenance=where,
            )
    return cases


# Every row has a bucket; the order of batches is nobody's business here.
BUCKETS: dict[str, Any] = {
    "max_duration": 0.8,
    "bucket_duration_bins": [0.5, 0.8],
    "bucket_batch_size": [2, 2],
    "batch_size": None,
    "concurrent_bucketing": False,
}


def of_rows() -> dict[str, Case]:
    """Rows of NeMo manifests, plain and in tars."""
    rows = {"manifest_filepath": f"{ROOT}/rows/rows.json"}
    members = {
        "manifest_filepath": f"{ROOT}/members/manifest__OP_0..1_CL_.json",
        "tarred_audio_filepaths": f"{ROOT}/members/audio__OP_0..1_CL_.tar",
    }
    once = {**members, "manifest_filepath": f"{ROOT}/members/all.json"}
    buckets = {
        "manifest_filepath": [[f"{ROOT}/members/manifest_{n}.json"] for n in (0, 1)],
        "tarred_audio_filepaths": [[f"{ROOT}/members/audio_{n}.tar"] for n in (0, 1)],
    }
    weighted = {
        **buckets,
        "manifest_filepath": [[f"{ROOT}/members/manifest_{n}.json", 2 - n] for n in (0, 1)],
    }
    listed = {key: [path for (path,) in paths] for key, paths in buckets.items()}
    bracketed = {
        "manifest_filepath": f"{ROOT}/members/manifest_{{0..1}}.json",
        "tarred_audio_filepaths": f"{ROOT}/members/audio_[0..1].tar",
    }
    rounded, exact = (
        {
            "manifest_filepath": f"{ROOT}/rounded/{name}_members.json",
            "tarred_audio_filepaths": f"{ROOT}/rounded/audio_0.tar",
        }
        for name in ("rounded", "exact")
    )
    part = {**members, "manifest_filepath": f"{ROOT}/members/part.json"}
    lines = [{"type": "text_iter", "name": "line", "path": f"{ROOT}/odd/lines.txt"}]
    extra = {"input_cfg": [{"type": "nemo", **rows, "extra_fields": lines}]}
    odd = {
        name: {"manifest_filepath": f"{ROOT}/odd/{name}.json"}
        for name in ("channels", "statuses", "translated", "number", "late", "late_exact")
    }
    rates = {"manifest_filepath": f"{ROOT}/rows/rates.json"}
    tarred: dict[str, Any] = {"expected": of_members, "provenance": TARRED}
    return {
        "rows": Case(config=rows, expected=of_plain_rows),
        "rows, other fields": Case(
            config={**rows, "text_field": "note", "lang_field": "text"}, expected=of_plain_rows
        ),
        "rows that say their rate": Case(config=rates, expected=of_rows_with_rates),
        "members": Case(config=members, **tarred),
        "members, one manifest": Case(config=once, **tarred),
        "members, buckets": Case(config=buckets, **tarred),
        "members, weighted buckets": Case(config=weighted, **tarred),
        "members, a list": Case(config=listed, **tarred),
        "members, other brackets": Case(config=bracketed, **tarred),
        "members, of a part": Case(
            config={**part, "skip_missing_manifest_entries": True}, **tarred
        ),
        "members, lengths rounded": Case(
            config=rounded, ours=exact, expected=of_whole_members, provenance=TARRED
        ),
        "rows, lengths rounded": Case(
            config={"manifest_filepath": f"{ROOT}/rounded/rounded.json"},
            ours={"manifest_filepath": f"{ROOT}/rounded/exact.json"},
            expected=of_plain_rows,
        ),
        "rows, lines of texts": Case(config=extra, expected=of_plain_rows),
        "rows, in buckets": Case(config={**rows, **BUCKETS}, expected=of_plain_rows),
        "rows, statuses": Case(config=odd["statuses"], expected=of_plain_rows),
        "rows, texts that are numbers": Case(config=odd["number"], expected=of_numbers),
        "rows that say their rate and an offset": Case(
            config=odd["late"], ours=odd["late_exact"], expected=of_late_rows
        ),
        "rows, translated": Case(config=odd["translated"], expected=of_translated_rows),
        "rows that say their channel": Case(
            config={**odd["channels"], "channel_selector": "side"},
            expected=lambda facts: OfChannel(of_plain_rows, facts["custom"]["side"])(facts),
        ),
    }


def of_lhotse() -> dict[str, Case]:
    """Cuts and Shars with all that they can hold."""
    cuts = {"cuts_path": f"{ROOT}/rich/rich.jsonl"}
    folder = f"{ROOT}/shars"
    fields = {
        "cuts": f"{ROOT}/ten/shar/cuts._OP_000000..000001_CL_.jsonl.gz",
        "recording": f"{ROOT}/ten/shar/recording._OP_000000..000001_CL_.tar",
        "wer": f"{folder}/wer._OP_0..1_CL_.jsonl",
    }
    two = [f"{folder}/shar", f"{folder}/other"]
    weighted = [[two[0], 3], [two[1], 0.5]]
    return {
        "rich cuts": Case(config=cuts),
        "rich cuts, another status": Case(config={**cuts, "keep": "fail"}),
        "rich cuts, error rate": Case(config={**cuts, "max_cer": 0.4}),
        "cuts with arrays in time": Case(
            config={"cuts_path": f"{ROOT}/rich/timed.jsonl"},
            refusal="'NoneType' object has no attribute 'storage_type'",
        ),
        "rich cuts, resampled": Case(config={**cuts, "sample_rate": 8000}),
        "rich cuts, windows": Case(
            config={**cuts, "cut_into_windows_duration": 0.25}, expected=of_windows
        ),
        "rich cuts, windows of whole transcripts": Case(
            config={
                **cuts,
                "cut_into_windows_duration": 0.25,
                "keep_excessive_supervisions": False,
            },
            expected=of_windows,
        ),
        "rich cuts, truncated": Case(
            config={**cuts, "truncate_duration": 0.25, "truncate_offset_type": "start"},
            expected=of_new_cuts,
        ),
        "rich cuts, similarity": Case(config={**cuts, "min_context_speaker_similarity": 0.4}),
        "rich shar": Case(config={"shar_path": two[0]}, provenance=SHAR),
        "rich shar, resampled": Case(
            config={"shar_path": two[0], "sample_rate": 22050}, provenance=SHAR
        ),
        "shar by fields": Case(config={"shar_path": fields}, provenance=SHAR),
        "shar folders": Case(config={"shar_path": two}, provenance=SHAR),
        "weighted shar folders": Case(config={"shar_path": weighted}, provenance=SHAR),
    }


def of_tables() -> dict[str, Case]:
    """Parquet files."""
    return {
        f"parquet, {name}": Case(
            config={
                "input_cfg": [
                    {"type": "parquet", "manifest_filepath": f"{ROOT}/tables/{name}.parquet"}
                ]
            },
            expected=of_table_rows,
        )
        for name in ("bytes", "struct", "nameless")
    }


BLEND: list[dict[str, Any]] = [
    {
        "type": "group",
        "weight": 0.3,
        "tags": {"task": "asr", "level": "outer"},
        "input_cfg": [
            {
                "type": "lhotse",
                "cuts_path": f"{ROOT}/ten/cuts.jsonl",
                "weight": 2,
                "tags": {"origin": "cuts", "list": [1, {"a": None}]},
            },
            {
                "type": "group",
                "weight": 1,
                "tags": {"level": "inner"},
                "input_cfg": [
                    {"type": "nemo", "manifest_filepath": f"{ROOT}/ten/manifest.json"},
                ],
            },
        ],
    },
    {
        "type": "lhotse",
        "cuts_path": f"{ROOT}/two/cuts.jsonl",
        "weight": 1.5,
        "tags": {"text": "a tag", "lang": "xx"},
    },
]


def of_mixtures() -> dict[str, Case]:
    """Blends with groups, weights and tags."""
    mixed = [
        {"type": "nemo_tarred", **corpus_in("ten").flat("tarred"), "weight": 0.7},
        {"type": "parquet", "manifest_filepath": f"{ROOT}/tables/bytes.parquet", "weight": 0.3},
    ]
    return {
        "a blend": Case(config={"input_cfg": BLEND}, expected=of_blends),
        "a blend of tars and tables": Case(
            config={"input_cfg": mixed},
            expected=of_a_mixture,
        ),
    }


def of_tokens() -> dict[str, Case]:
    """Tokens of texts, filters on them, and prompts."""
    first, second, bare = (
        {"manifest_filepath": f"{ROOT}/spoken/{name}.json"}
        for name in ("spoken", "spoken2", "spoken3")
    )
    english, special = f"{ROOT}/spoken/en.model", f"{ROOT}/spoken/special.model"
    both = {"en": english, "de": f"{ROOT}/spoken/de.model"}
    several = {"spl_tokens": special, **both}
    windows = {"cut_into_windows_duration": 0.4, "max_tps": 60.0}
    canary, canary2 = {"prompt_format": "canary"}, {"prompt_format": "canary2"}
    cases: dict[str, tuple[dict[str, Any], str | dict[str, str]]] = {
        "tokens": (first, english),
        "tokens by language": (first, both),
        "tokens, at most 20 a second": ({**first, "max_tps": 20.0}, english),
        "tokens, at least 30 a second": ({**first, "min_tps": 30}, english),
        "tokens of windows": ({**first, **windows}, english),
        "not tokenized": ({**first, "pretokenize": False}, english),
        "canary": ({**first, **canary}, special),
        "canary by language": ({**first, **canary}, several),
        "canary2": ({**second, **canary2}, special),
        "canary2 by language": ({**second, **canary2}, several),
        "canary2, no fields": ({**bare, **canary2}, several),
        "canary2, at most 25 a second": ({**second, **canary2, "max_tps": 25.0}, several),
    }
    made = {
        name: Case(config=config, tokenizer=tokenizer, expected=of_plain_rows)
        for name, (config, tokenizer) in cases.items()
    }
    refusal = "Expected the last token in answer_ids to be EOS"
    return made | {"canary": replace(made["canary"], refusal=refusal)}


def of_talk() -> dict[str, Case]:
    """Texts, conversations and duplex speech."""
    return {
        name: Case(
            config=config,
            tokenizer=f"{ROOT}/talk/{MODEL}",
            expected=of_talk_windows if "windows" in name else OF_TALK.get(of, same),
            provenance=TARRED if of in TARRED_TALK else frozenset(),
            refusal="Couldn't determine the length" if "without a prompt" in name else None,
        )
        for name, (of, config) in talk_configs().items()
    }


CASES: dict[str, Case] = {
    **of_forms(),
    **of_rows(),
    **of_lhotse(),
    **of_tables(),
    **of_mixtures(),
    **of_tokens(),
    **of_talk(),
}
