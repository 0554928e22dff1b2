"""One case of the fuzzer: a corpus, a file of it that comes to harm, and what may come of it."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
import random
import traceback
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import playhead
from fuzz.corpora import CORPORA, Corpus, heard
from fuzz.damage import damage, damage_json
from fuzz.readings import HeardCuts, Reading, Sample, opened, read, unlike
from fuzz.talk import TALK
from playhead.cli.index_exclude import exclude, read_names
from playhead.index.sidecars import Sidecar, build_sidecar
from support.token_models import hf_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SEED = 20_240_229
_BY_NAME = {corpus.name: corpus for corpus in (*CORPORA, *TALK)}


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    case: int
    what: str
    """The file, when it came to harm, and how."""
    outcome: str
    """`refused by …`, `same`, `as damaged`; or what is wrong."""
    is_right: bool


@lru_cache
def intact(name: str, folder: str) -> tuple[dict[str, bytes], list[Sample]]:
    """The files of a corpus by relative path, and what Playhead reads of them."""
    root = Path(folder)
    root.mkdir(parents=True)
    corpus = _BY_NAME[name]
    corpus.build(root)
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    os.environ["PLAYHEAD_CACHE"] = f"{folder}.cache"
    if not corpus.is_compared:
        return files, read(opened(corpus.config(root), dataset=HeardCuts())).samples
    reference = corpus.reference(root)
    wrong = unlike(read(opened(corpus.config(root))), reference)
    assert wrong is None, f"{name} is read wrongly without any damage: {wrong}"
    return files, reference


class Bench:
    """A corpus in a folder of its own, where one case takes place.

    Parameters
    ----------
    root
        A folder for the case alone.
    name
        Which corpus.
    rng
        Decides everything.
    """

    def __init__(self, root: Path, name: str, rng: random.Random) -> None:
        self.corpus: Corpus = _BY_NAME[name]
        self.rng = rng
        self.files, self.samples = intact(name, str(root.parent / "intact" / name))
        self.folder = root / "data"
        self.config = self.corpus.config(self.folder)
        self.what = ""
        os.environ["PLAYHEAD_CACHE"] = str(root / "cache")
        for path, data in self.files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(data)

    def pick(self, patterns: Sequence[str]) -> Path:
        """One of the corpus' files that fit."""
        fitting = [
            path
            for path in self.files
            if any(fnmatch.fnmatch(path, pattern) for pattern in patterns)
        ]
        return self.folder / self.rng.choice(fitting)

    def harm(self, path: Path, *, in_place: bool = True, when: str = "") -> None:
        """Damage a file; what knows it by its time stamp does not notice."""
        data, times = path.read_bytes(), path.stat()
        changed, how = damage(data, self.rng, is_text=path.suffix in self.corpus.texts)
        if in_place:
            path.write_bytes(changed)
        else:
            # A file that is mapped may be replaced, never shortened.
            fresh = path.with_name(f"{path.name}.fresh")
            fresh.write_bytes(changed)
            fresh.replace(path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.what = f"{path.relative_to(self.folder.parent)} {when}: {how}"

    def open(self, **options: Any) -> playhead.Loader:
        """A loader of it."""
        if not self.corpus.is_compared:
            options["dataset"] = HeardCuts()
        return opened(self.config, **options)

    def as_others_read(self) -> list[Sample] | None:
        """What others read of the files as they are; None where they fail."""
        try:
            return self.corpus.reference(self.folder)
        except Exception:  # noqa: BLE001 - that of strangers may be of any kind
            return None

    def with_audio_as_it_is(self) -> list[Sample]:
        """The rows that were there, with what the bytes in the places of their audio are now."""
        if self.corpus.as_audio_is is not None:
            return self.corpus.as_audio_is(self.folder, self.files)
        found = []
        for number, sample in enumerate(self.samples):
            place = self.corpus.place(number, self.files)
            if place is None:
                found.append(sample)
                continue
            path, offset, size, start, seconds = place
            now = (self.folder / path).read_bytes()
            # A file that holds nothing else may have become longer.
            now = now if size == len(self.files[path]) else now[offset : offset + size]
            if now == self.files[path][offset : offset + size]:
                found.append(sample)
            else:
                source = self.folder / path if size == len(self.files[path]) else now
                found.append(dataclasses.replace(sample, audio=heard(source, start, seconds)))
        return found


def judged(bench: Bench, reading: Callable[[], Reading], *allowed: Sequence[Sample] | None) -> str:
    """Read, and say what came of it; wrong outcomes begin with a capital letter."""
    try:
        found = reading()
    except playhead.PlayheadError as error:
        return f"refused by {type(error).__name__}"
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(last.filename).name}:{last.lineno}"
        return f"RAISED {type(error).__name__} at {at}: {str(error)[:200]}"
    wrong = unlike(found, bench.samples)
    if wrong is None:
        return "same"
    if not bench.corpus.is_compared:
        return "as damaged"
    for one in allowed:
        if one is not None and unlike(found, one) is None:
            return "as damaged"
    return f"WRONG SAMPLES: {wrong}"


def data_before(bench: Bench) -> str:
    """A file is damaged before anybody has seen it: what it says now is all there is to know."""
    bench.harm(bench.pick((*bench.corpus.rows, *bench.corpus.audio)), when="before it is indexed")
    return judged(bench, lambda: read(bench.open()), bench.as_others_read())


def data_after(bench: Bench) -> str:
    """A file is damaged after it was indexed, and no time stamp tells."""
    rows = bench.rng.random() < 0.5 and bench.corpus.rows
    path = bench.pick(rows or bench.corpus.audio or bench.corpus.rows)
    size = path.stat().st_size
    read(bench.open())
    bench.harm(path, when="after it was indexed")
    rebuilt = path.stat().st_size != size or _in(bench, path, ("shar/*.tar", "*.parquet"))
    others = bench.as_others_read() if rebuilt else None
    return judged(bench, lambda: read(bench.open()), bench.with_audio_as_it_is(), others)


def data_under(bench: Bench) -> str:
    """A file is damaged while a loader is open."""
    path = bench.pick((*bench.corpus.rows, *bench.corpus.audio))
    loader = bench.open()
    bench.harm(path, when="while it is open")
    others = bench.as_others_read() if _in(bench, path, ("shar/*.tar", "*.parquet")) else None
    return judged(bench, lambda: read(loader), bench.with_audio_as_it_is(), others)


def data_tolerated(bench: Bench) -> str:
    """Audio is damaged, and what cannot be decoded is to be left out."""
    path = bench.pick(bench.corpus.audio or bench.corpus.rows)
    bench.config["fault_tolerant_audio_loading"] = True
    bench.harm(path, when="before it is indexed, tolerated")
    return judged(
        bench, lambda: read(bench.open()), bench.as_others_read(), bench.with_audio_as_it_is()
    )


def _in(bench: Bench, path: Path, patterns: Sequence[str]) -> bool:
    name = str(path.relative_to(bench.folder))
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def made_files(pattern: str) -> Callable[[Bench], str]:
    """A file that Playhead wrote itself is damaged."""

    def case(bench: Bench) -> str:
        read(bench.open())
        cache = bench.folder.parent / "cache"
        found = sorted(path for path in cache.rglob(pattern) if path.is_file())
        if not found:
            return "same"
        bench.harm(bench.rng.choice(found), in_place=False, when="once it was written")
        return judged(bench, lambda: read(bench.open()))

    return case


def sidecar(bench: Bench) -> str:
    """An `.idx` is damaged, and the config demands it."""
    bench.config["indexed"] = True
    kinds = {".tar": "wds_tar" if "shar" in bench.corpus.name else "nemo_tar"}
    made = []
    for path in bench.files:
        if path.endswith((".json", ".jsonl", ".tar")):
            data = str(bench.folder / path)
            kind: Any = kinds.get(Path(path).suffix, "jsonl")
            build_sidecar(Sidecar(path=data, kind=kind, idx=f"{data}.idx"))
            made.append(Path(f"{data}.idx"))
    if bench.rng.random() < 0.3:
        read(bench.open())
    bench.harm(bench.rng.choice(made), when="once it was written")
    return judged(bench, lambda: read(bench.open()))


def exclusions(bench: Bench) -> str:
    """The list of rows that are left out is damaged: none of them may come back."""
    gone, kept = _excluded(bench, [1, 3])
    (path,) = (bench.folder.parent / "cache").rglob("*.excluded.arrow")
    del gone
    bench.harm(path, in_place=False, when="once it was written")
    bench.samples = kept
    return judged(bench, lambda: read(bench.open()))


def _records(bench: Bench, rows: Sequence[int]) -> bytes:
    loader = bench.open()
    fetch: Any = loader.fetch
    pack = fetch.spec.packs[0].open()
    return b"".join(
        json.dumps(
            {
                "leaf": fetch.spec.leaves[0].key,
                "shard": pack.shards.uris[pack.shard[row]],
                "byte": int(pack.row_offset[row]),
                "row_crc": int(pack.row_crc[row]),
                "reason": "bad",
                "id": bench.samples[row].id,
            }
        ).encode()
        + b"\n"
        for row in rows
    )


def _excluded(bench: Bench, rows: Sequence[int]) -> tuple[list[Sample], list[Sample]]:
    """Leave rows out; return those and the others."""
    names = bench.folder.parent / "bad.jsonl"
    names.write_bytes(_records(bench, rows))
    _apply(bench, names)
    gone = [bench.samples[row] for row in rows]
    return gone, [sample for sample in bench.samples if sample not in gone]


def _apply(bench: Bench, names: Path) -> None:
    fetch: Any = bench.open().fetch
    leaves = [
        (leaf, pack.open()) for leaf, pack in zip(fetch.spec.leaves, fetch.spec.packs, strict=True)
    ]
    exclude(leaves, read_names([str(names)]))


def excluding(bench: Bench) -> str:
    """The list of what is to be left out is damaged: it leaves out no other row than it names."""
    names = bench.folder.parent / "bad.jsonl"
    names.write_bytes(_records(bench, [1, 3]))
    bench.harm(names, when="before it is read")
    everything = bench.samples

    def reading() -> Reading:
        _apply(bench, names)
        found = read(bench.open())
        wanted = {sample.id for sample in found.samples}
        lost = [sample.id for sample in everything if sample.id not in wanted]
        assert set(lost) <= {everything[1].id, everything[3].id}, f"{lost} are left out"
        return Reading(found.samples, found.skipped + len(lost))

    return judged(bench, reading)


def _with_tokens(bench: Bench) -> str:
    model = bench.folder.parent / "tokenizer.json"
    model.write_bytes(hf_bytes())
    bench.config["max_tps"] = 1e6
    return str(model)


def tokens(bench: Bench) -> str:
    """The file of token counts is damaged: they are counted again, or it is said."""
    model = _with_tokens(bench)
    bench.samples = read(bench.open(tokenizer=model)).samples
    found = sorted((bench.folder.parent / "cache").rglob("*tokens-*"))
    found = [path for path in found if path.is_file() and "lock" not in path.name]
    assert found, "there is no file of token counts"
    bench.harm(bench.rng.choice(found), in_place=False, when="once it was written")
    return judged(bench, lambda: read(bench.open(tokenizer=model)))


def tokenizer(bench: Bench) -> str:
    """A tokenizer is damaged: it is refused, or it is another tokenizer."""
    model = Path(_with_tokens(bench))
    bench.harm(model, when="before it is read")

    def reading() -> Reading:
        found = read(bench.open(tokenizer=str(model)))
        plain = [Sample(one.id, one.text, one.audio, (), one.rate) for one in found.samples]
        return Reading(plain, found.skipped)

    return judged(bench, reading)


def blend(bench: Bench) -> str:
    """A blend is damaged: it is refused, or it names other data or options, and no wrong ones."""
    entry = {"type": _TYPES[bench.corpus.name], **bench.config}
    path = bench.folder / "blend.yaml"
    lines = ["batch_size: 2", "seed: 1", "input_cfg:"]
    for number, (key, value) in enumerate(entry.items()):
        lines.append(f"  {' ' if number else '-'} {key}: {json.dumps(value)}")
    lines += ["    weight: 0.5", "    tags: {lang: en, task: asr}"]
    path.write_text("\n".join([*lines, "min_duration: 0.01", "max_duration: 20.0", ""]))
    bench.harm(path, when="before it is read")

    def reading() -> Reading:
        plain: dict[str, Any] = {"shuffle": False, "force_finite": True, "bad_samples": None}
        found = read(opened_file(path, plain))
        # Which samples, and in which order, is what such a file says.
        order = {sample.id: number for number, sample in enumerate(bench.samples)}
        known = [one for one in found.samples if one.id in order]
        known.sort(key=lambda one: order[one.id])
        strangers = [one for one in found.samples if one.id not in order]
        distinct = list({one.id: one for one in known}.values())
        return Reading(distinct + strangers, len(bench.samples))

    return judged(bench, reading)


def opened_file(path: Path, options: dict[str, Any]) -> playhead.Loader:
    """A loader of a YAML file."""
    from fuzz.readings import Heard

    return playhead.dataloader(str(path), dataset=Heard(), **options)


_TYPES = {
    "nemo": "nemo",
    "tarred": "nemo_tarred",
    "cuts": "lhotse",
    "shar": "lhotse_shar",
    "manifest.gz": "nemo",
    "manifest.zst": "nemo",
    "manifest.xz": "nemo",
    "shar.gz": "lhotse_shar",
}


def position(bench: Bench) -> str:
    """A state is damaged: it is refused, or it is another state of the same data."""
    endless = bench.rng.random() < 0.5
    options: dict[str, Any] = {
        "shuffle": True,
        "force_finite": not endless,
        "seed": 3,
        "micro_batches_per_step": 2,
        "window_draws": 5,
    }
    loader = bench.open(**options)
    batches = iter(loader)
    for _ in range(bench.rng.choice((0, 2, 4, 6))):
        if next(batches, None) is None:
            break
    state = loader.state_dict()
    if bench.rng.random() < 0.7:
        state, how = damage_json(state, bench.rng)
    else:
        data, how = damage(json.dumps(state).encode(), bench.rng, is_text=True)
        try:
            state = json.loads(data)
        except ValueError:
            return "same"
    bench.what = f"a state: {how}"
    order = {sample.id: number for number, sample in enumerate(bench.samples)}

    def reading() -> Reading:
        other = bench.open(**options)
        other.load_state_dict(state, reseed=bench.rng.random() < 0.3)
        found: list[Sample] = []
        for _, batch in zip(range(6), other, strict=False):
            found += batch["samples"]
        json.dumps(other.state_dict())
        distinct = {one.id: one for one in found}
        return Reading(sorted(distinct.values(), key=lambda one: order[one.id]), len(order))

    return judged(bench, reading)


def _targets() -> list[tuple[str, Callable[[Bench], str]]]:
    names = [corpus.name for corpus in CORPORA]
    plain = ["nemo", "tarred", "cuts", "shar"]
    cases: list[tuple[str, Callable[[Bench], str]]] = []
    for name in names:
        cases += [(name, case) for case in (data_before, data_before, data_after, data_under)]
        cases += [(name, made_files("*.idxpack")), (name, data_tolerated)]
    cases += [("parquet", made_files("*.arrow"))] * 2
    cases += [(name, sidecar) for name in plain]
    cases += [(name, blend) for name in _TYPES]
    cases += [(name, position) for name in names]
    cases += [(name, case) for name in ("nemo", "shar") for case in (exclusions, excluding)]
    cases += [(name, tokens) for name in ("nemo", "manifest.gz")]
    cases.append(("cuts", tokenizer))
    for corpus in TALK:
        ways = [data_before, data_before, data_before, data_after, data_under]
        if corpus.is_compared:
            ways += [position, made_files("*.idxpack")]
        if corpus.audio:
            ways.append(data_tolerated)
        cases += [(corpus.name, case) for case in ways]
    return cases


TARGETS = _targets()


def run_case(number: int, root: Path) -> Verdict:
    """Run a case in a folder of its own."""
    name, case = TARGETS[number % len(TARGETS)]
    rng = random.Random(f"{SEED} {number}")
    bench = Bench(root / f"case{number}", name, rng)
    try:
        outcome = case(bench)
    except Exception as error:  # noqa: BLE001 - the fuzzer itself is at fault
        lines = traceback.format_exception(error)
        outcome = f"BROKEN: {type(error).__name__}: {error} {''.join(lines[-3:])}"
    label = getattr(case, "__name__", "case")
    is_right = outcome == "same" or outcome.startswith(("as damaged", "refused by"))
    return Verdict(number, f"{name}, {label}, {bench.what}", outcome, is_right)
