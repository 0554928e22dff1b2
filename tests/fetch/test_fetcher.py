from __future__ import annotations

import pickle
import random
import sys

import numpy as np
import pytest
import soundfile as sf
import torch
from lhotse import CutSet, Recording, SupervisionSegment
from lhotse.dataset import UnsupervisedWaveformDataset
from lhotse.dataset.collation import collate_audio
from lhotse.dataset.input_strategies import AudioSamples
from torch.utils.data import DataLoader, Dataset

from playhead.config import Options
from playhead.datasets import Ids, SpeechToText
from playhead.errors import AudioError, ConfigError
from playhead.fetch import BatchInfo, Fetcher
from playhead.fetch.augment import Augmentation
from playhead.fetch.bad import without
from playhead.paths import expand
from playhead.tokens.encoding import Encoding
from playhead.tokens.tokenizer import load_tokenizer
from support.corpus import nemo_corpus, tarred_corpus
from support.fetching import leaf_of, micro_batch, spec_of
from support.token_models import ByLanguage, Words

DURATIONS = [0.3, 0.2, 0.25, 0.4, 0.35, 0.1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture(scope="module")
def leaves(folder):
    manifest, tar = tarred_corpus(folder / "tarred", DURATIONS, 2)
    return [
        leaf_of("nemo", manifest=nemo_corpus(folder / "plain", DURATIONS), tags={"kind": "plain"}),
        leaf_of("nemo_tarred", manifest=expand(manifest), tar=expand(tar), tags={"kind": "tarred"}),
    ]


@pytest.fixture(scope="module")
def spec(leaves, folder):
    return spec_of(leaves, folder, sample_rate=16000, info=True)


class Recognition:
    """What speech recognition datasets of Lhotse do."""

    def __init__(self):
        self.strategy = AudioSamples()

    def __getitem__(self, cuts: CutSet):
        audio, lengths = self.strategy(cuts)
        return {
            "inputs": audio,
            "lengths": lengths,
            "text": [cut.supervisions[0].text for cut in cuts],
            "language": [cut.supervisions[0].language for cut in cuts],
            "kind": [cut.kind for cut in cuts],
            "ids": [cut.id for cut in cuts],
        }


class Noisy(Dataset):
    """Draws from everything that there is."""

    def __init__(self):
        self.rng = np.random.default_rng()

    def __getitem__(self, cuts: CutSet):
        audio, lengths = collate_audio(cuts)
        audio = audio + torch.randn_like(audio) * random.random() + self.rng.random()
        return {"audio": audio + np.random.random(), "audio_lens": lengths, "ids": list(cuts.ids)}


class Broken:
    def __init__(self, error):
        self.error = error

    def __getitem__(self, cuts):
        raise self.error


def test_any_lhotse_dataset_works(spec):
    batch = Fetcher(spec, Recognition())(micro_batch([3, 0, 5], [0, 1, 1]))
    assert batch["text"] == ["utt 3", "utt 0", "utt 5"]
    assert batch["language"] == ["en", None, None]
    assert batch["kind"] == ["plain", "tarred", "tarred"]
    assert batch["ids"] == ["wav/utt00003.wav", "utt00000.wav", "utt00005.wav"]
    assert batch["lengths"].tolist() == [6400, 4800, 1600]
    same = Fetcher(spec, SpeechToText())(micro_batch([3, 0, 5], [0, 1, 1]))
    assert torch.equal(batch["inputs"], same["audio"])


def test_lhotses_own_dataset(spec):
    batch = Fetcher(spec, UnsupervisedWaveformDataset())(micro_batch([1, 1], [0, 1]))
    assert batch["audio"].shape == (2, 3200 + 800)
    assert [cut.id for cut in batch["cuts"]] == ["wav/utt00001.wav", "utt00002.wav"]


def test_batches_say_where_they_stand(spec):
    batch = Fetcher(spec, Recognition())(
        micro_batch([1, 2], [0, 1], step=41, slot=3, repeated=[False, True])
    )
    assert batch["playhead"] == BatchInfo(
        step=41, slot=3, repeated=[False, True], declared=[(0, 1, 0), (1, 2, 0)]
    )
    assert batch["playhead"].fresh == [0]
    assert type(batch["playhead"].step) is int


def test_only_our_own_datasets_say_it_unasked(leaves, folder):
    quiet = spec_of(leaves, folder, sample_rate=16000)
    assert "playhead" not in Fetcher(quiet, Recognition())(micro_batch([1]))
    assert "playhead" in Fetcher(quiet, SpeechToText())(micro_batch([1]))
    assert "playhead" in Fetcher(quiet, Ids())(micro_batch([1]))


def test_info_needs_a_dict(spec):
    class Tuples:
        def __getitem__(self, cuts):
            return (1, 2)

    with pytest.raises(ConfigError, match=r"(?i)info: true.*tuple.*leave info out"):
        Fetcher(spec, Tuples())(micro_batch([1]))


def test_a_method_called_collate_alone_is_not_ours(spec):
    class Theirs(Recognition):
        def collate(self, items):
            raise AssertionError

    assert "inputs" in Fetcher(spec, Theirs())(micro_batch([0]))


def test_datasets_of_examples_get_keys_and_rate(spec):
    seen = {}

    class Mine:
        reads_audio = False

        def collate(self, examples, *, sample_rate, sample_keys):
            texts = [example.text for example in examples]
            seen.update(rate=sample_rate, keys=sample_keys.tolist(), texts=texts)
            return {"draw": random.random()}

    fetch = Fetcher(spec, Mine())
    first = fetch(micro_batch([0, 4], key=9))["draw"]
    assert seen == {"rate": 16000, "keys": [0, 1], "texts": ["utt 0", "utt 4"]}
    assert fetch(micro_batch([0, 4], key=9))["draw"] == first
    assert fetch(micro_batch([0, 4], key=10))["draw"] != first


def test_errors_of_the_dataset_pass_as_they_are(spec):
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        Fetcher(spec, Broken(error))(micro_batch([1], step=7, slot=2))
    assert caught.value is error
    if sys.version_info >= (3, 11):
        assert error.__notes__ == ["In step 7, slot 2."]


def test_an_audio_error_inside_lhotse_names_the_sample(tmp_path):
    """The header is whole, so that only decoding finds out."""
    manifest = nemo_corpus(tmp_path, DURATIONS[:3])
    wav = tmp_path / "wav/utt00001.wav"
    spec = spec_of([leaf_of("nemo", manifest=manifest)], tmp_path, sample_rate=16000)

    samples, rate = sf.read(wav)
    sf.write(tmp_path / "x.flac", samples, rate)
    wav.write_bytes((tmp_path / "x.flac").read_bytes()[:-3000])
    with pytest.raises(AudioError) as caught:
        Fetcher(spec, Recognition())(micro_batch([0, 1, 2]))
    for part in (str(wav), "row 1", "leaf train", "lost sync", str(manifest)):
        assert part in str(caught.value)
    assert "lhotse.audio" in type(caught.value.__cause__).__module__


def test_the_main_process_keeps_its_randomness(spec):
    random.seed(3)
    torch.manual_seed(3)
    np.random.seed(3)
    expected = (random.random(), torch.rand(1).item(), np.random.random())
    random.seed(3)
    torch.manual_seed(3)
    np.random.seed(3)
    Fetcher(spec, Noisy())(micro_batch([0, 1]))
    assert (random.random(), torch.rand(1).item(), np.random.random()) == expected


def test_a_fetcher_travels_without_what_it_has_open(spec):
    fetch = Fetcher(spec, Ids())
    fetch(micro_batch([0, 1], [0, 1]))
    data = pickle.dumps(fetch)
    assert len(data) < 5_000
    assert pickle.loads(data)(micro_batch([2]))["ids"] == ["wav/utt00002.wav"]


def test_time_is_counted(spec):
    fetch = Fetcher(spec, SpeechToText())
    for _ in range(3):
        fetch(micro_batch([0, 1, 2], 1))
    timings = fetch.timings
    assert (timings.batches, timings.samples) == (3, 9)
    assert min(timings.read_seconds, timings.parse_seconds, timings.dataset_seconds) > 0


class Items(Dataset):
    def __init__(self, fetch):
        self.fetch = fetch

    def __getitem__(self, batch):
        return self.fetch(batch)


def as_is(batch):
    return batch


@pytest.mark.parametrize(
    ("dataset", "start", "workers"),
    [(SpeechToText, "fork", 2), (Noisy, "fork", 1), (Noisy, "spawn", 1)],
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_workers_make_the_same_batches(spec, dataset, start, workers):
    batches = [micro_batch([i, 5 - i, 2], [0, 1, 1], key=i, step=i) for i in range(6)]
    here = Fetcher(spec, dataset())
    expected = [here(batch) for batch in batches]
    loader = DataLoader(
        Items(Fetcher(spec, dataset())),
        sampler=batches,
        batch_size=None,
        collate_fn=as_is,
        num_workers=workers,
        multiprocessing_context=start,
        generator=torch.Generator(),
    )
    for made, batch in zip(loader, expected, strict=True):
        assert made["playhead"] == batch["playhead"]
        assert made["ids"] == batch["ids"]
        assert torch.equal(made["audio"], batch["audio"])
        assert torch.equal(made["audio_lens"], batch["audio_lens"])


class Tokens(Dataset):
    """What datasets of NeMo look at."""

    def __getitem__(self, cuts: CutSet):
        return {
            "ids": [cut.id for cut in cuts],
            "tokens": [
                [one.tokens.tolist() for one in cut.supervisions if one.has_custom("tokens")]
                for cut in cuts
            ],
            "prompt": [
                {
                    name: getattr(cut, name)
                    for name in ("input_ids", "context_ids", "answer_ids", "mask")
                    if cut.has_custom(name)
                }
                for cut in cuts
            ],
        }


WORDS = Encoding(load_tokenizer(Words()))
PROMPT = Encoding(load_tokenizer(Words()), "plain")


def test_supervisions_have_their_tokens(leaves, folder):
    spec = spec_of(leaves, folder, sample_rate=16000, encoding=WORDS)
    batch = Fetcher(spec, Tokens())(micro_batch([3, 0], [0, 1]))
    assert batch["tokens"] == [[[3, 1]], [[3, 1]]]
    assert batch["prompt"] == [{}, {}]


def test_each_supervision_of_a_cut_has_its_own_tokens(tmp_path):
    path = tmp_path / "a.wav"
    sf.write(path, np.zeros(16000), 16000)
    cut = Recording.from_file(path).to_cut()
    cut.supervisions = [
        SupervisionSegment("s0", cut.recording_id, 0, 0.4, text="we", language="en"),
        SupervisionSegment("s1", cut.recording_id, 0.3, 0.1),
        SupervisionSegment("s2", cut.recording_id, 0.5, 0.4, text="wir sind", language="de"),
    ]
    mixed = cut.append(cut).with_id("mixed")
    CutSet([cut, mixed]).to_file(tmp_path / "cuts.jsonl")
    leaf = leaf_of("lhotse", cuts=tmp_path / "cuts.jsonl")
    by_language = Encoding(load_tokenizer(ByLanguage()))
    spec = spec_of([leaf], tmp_path, sample_rate=16000, encoding=by_language)
    batch = Fetcher(spec, Tokens())(micro_batch([0, 1]))
    assert batch["tokens"] == [[[2], [103, 104]], [[2], [103, 104]] * 2]


def test_with_a_prompt_cuts_have_what_it_makes(leaves, folder):
    spec = spec_of(leaves, folder, sample_rate=16000, encoding=PROMPT)
    batch = Fetcher(spec, Tokens())(micro_batch([3, 0], [0, 1]))
    for found in batch["prompt"]:
        assert found["input_ids"].dtype == torch.int64
        assert found["mask"].dtype == torch.bool
        assert found["answer_ids"].tolist() == [3, 1]
    assert batch["tokens"] == [[], []]


def joining(**options):
    """Samples of a batch become few long ones."""
    config = Options(
        sample_rate=16000,
        concatenate_samples=True,
        concatenate_duration_factor=10.0,
        db_norm=None,
        **options,
    )
    return Augmentation.from_options(config)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("encoding", [WORDS, PROMPT])
def test_joined_samples_have_the_tokens_of_all(leaves, folder, merge, encoding):
    augmentation = joining(concatenate_merge_supervisions=merge)
    spec = spec_of(
        leaves, folder, sample_rate=16000, info=True, encoding=encoding, augmentation=augmentation
    )
    asked = micro_batch([3, 0, 1], [0, 1, 0], repeated=[False, True, False])
    batch = Fetcher(spec, Tokens())(asked)
    assert len(batch["ids"]) == 1
    assert batch["playhead"].repeated == [True]
    if encoding is WORDS:
        assert batch["tokens"] == [[[3, 1, 3, 1, 3, 1]] if merge else [[3, 1]] * 3]
    else:
        assert batch["prompt"][0]["answer_ids"].tolist() == [3, 1] * 3

    ours = Fetcher(spec, SpeechToText())(asked)
    assert ours["ids"] == batch["ids"]
    assert ours["playhead"].repeated == [True]
    assert ours["audio"].shape == (1, 16000 * 9 // 10 + 2 * 1600)
    name = "tokens" if encoding is WORDS else "answer_ids"
    assert ours[name].tolist() == [[3, 1] * 3]


def test_bad_audio_under_augmentation_is_left_out_too(tmp_path):
    manifest = nemo_corpus(tmp_path, DURATIONS)
    (tmp_path / "wav/utt00002.wav").write_bytes(b"no audio")
    augmentation = joining()
    spec = spec_of(
        [leaf_of("nemo", manifest=manifest, tags={"kind": "plain"})],
        tmp_path,
        sample_rate=16000,
        info=True,
        augmentation=augmentation,
        fault_tolerant=True,
    )
    for dataset in (SpeechToText, Recognition):
        asked = micro_batch([3, 2, 1])
        made = Fetcher(spec, dataset())(asked)
        expected = Fetcher(spec, dataset())(without(asked, [1]))
        assert made.places == (1,)
        assert made.batch["ids"] == expected["ids"]
        name = "audio" if dataset is SpeechToText else "inputs"
        assert torch.equal(made.batch[name], expected[name])
        assert (made.batch["playhead"].dropped, made.batch["playhead"].repeated) == (1, [False])


def test_datasets_without_audio_are_not_augmented(leaves, folder):
    spec = spec_of(leaves, folder, sample_rate=16000, augmentation=joining(), encoding=WORDS)
    batch = Fetcher(spec, Ids())(micro_batch([3, 0, 1]))
    assert batch["ids"] == [f"wav/utt0000{i}.wav" for i in (3, 0, 1)]
