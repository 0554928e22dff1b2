"""Columns beside packs: when they are believed, when made, and by whom."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import BuildError
from playhead.tokens import side_columns
from playhead.tokens.side_columns import find_columns, open_columns, side_path
from support.leaves import make_leaf
from support.token_rows import nemo_leaf, nemo_row, open_pack_of, side_files, write_rows


class Lengths:
    """Notes which rows it is asked for."""

    kind = "lengths"
    columns = {"bytes": np.uint32}  # noqa: RUF012
    runs_in_threads = True

    def __init__(self, digest: str = "0" * 16) -> None:
        self.digest = digest
        self.asked: list[tuple[int, int]] = []

    def of_rows(self, leaf, pack, stretch):
        self.asked.append(tuple(stretch))
        return {"bytes": pack.row_size[slice(*stretch)].astype(np.uint32)}


def rows_of(count: int, word: str = "we") -> list[dict]:
    return [nemo_row(i, text=f"{word} {'x' * (i % 7)}") for i in range(count)]


@pytest.fixture
def corpus(tmp_path):
    leaf = nemo_leaf(tmp_path, rows_of(10))
    return leaf, open_pack_of(leaf, tmp_path), tmp_path


def test_what_was_made_is_found(corpus):
    leaf, pack, folder = corpus
    measure = Lengths()
    assert find_columns(leaf, pack, "lengths", measure.digest) is None
    made = open_columns(leaf, pack, measure)["bytes"]
    np.testing.assert_array_equal(made, pack.row_size)
    assert measure.asked == [(0, 10)]
    again = open_columns(leaf, pack, measure)
    found = find_columns(leaf, pack, "lengths", measure.digest)
    assert measure.asked == [(0, 10)]
    for one in (again, found):
        np.testing.assert_array_equal(one["bytes"], pack.row_size)
    (path,) = side_files(folder)
    assert path == side_path(leaf, pack, "lengths", measure.digest)
    assert path.name.startswith(f"{Path(pack.path).name}.lengths-{'0' * 16}-")


def test_each_digest_and_each_reading_of_rows_has_its_own(corpus):
    leaf, pack, folder = corpus
    others = [
        replace(leaf, options=replace(leaf.options, text_field="words")),
        replace(leaf, options=replace(leaf.options, lang_field="tongue")),
        replace(leaf, tags={"context": "x"}),
    ]
    measures = [Lengths(), Lengths("1" * 16)]
    for one in (leaf, *others):
        for measure in measures:
            open_columns(one, pack, measure)
    assert len(side_files(folder)) == 8
    assert all(len(measure.asked) == 4 for measure in measures)
    renamed = replace(leaf, name="other", weight=3, labels={"corpus": "x"})
    open_columns(renamed, pack, measures[0])
    assert len(measures[0].asked) == 4


def test_rows_that_are_appended_are_all_that_is_looked_at(corpus):
    leaf, _, folder = corpus
    measure = Lengths()
    open_columns(leaf, open_pack_of(leaf, folder), measure)
    write_rows(folder / "m.json", rows_of(25))
    pack = open_pack_of(leaf, folder)
    assert find_columns(leaf, pack, "lengths", measure.digest) is None
    np.testing.assert_array_equal(open_columns(leaf, pack, measure)["bytes"], pack.row_size)
    assert measure.asked == [(0, 10), (10, 25)]


def test_rows_that_changed_are_looked_at_anew(corpus):
    leaf, _, folder = corpus
    measure = Lengths()
    open_columns(leaf, open_pack_of(leaf, folder), measure)
    # Of the same length: only what the rows say is another.
    write_rows(folder / "m.json", rows_of(10, "us"))
    pack = open_pack_of(leaf, folder)
    assert find_columns(leaf, pack, "lengths", measure.digest) is None
    open_columns(leaf, pack, measure)
    assert measure.asked == [(0, 10), (0, 10)]
    write_rows(folder / "m.json", rows_of(4, "us"))
    pack = open_pack_of(leaf, folder)
    assert find_columns(leaf, pack, "lengths", measure.digest) is None
    assert len(open_columns(leaf, pack, measure)["bytes"]) == 4
    assert measure.asked[2:] == [(0, 4)]


@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_never_believed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damage")
    leaf = nemo_leaf(folder, rows_of(20))
    pack = open_pack_of(leaf, folder)
    measure = Lengths()
    open_columns(leaf, pack, measure)
    (path,) = side_files(folder)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    if data.draw(st.booleans()):
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del damaged[data.draw(st.integers(0, len(whole) - 1)) :]
    path.write_bytes(bytes(damaged))
    assert find_columns(leaf, pack, "lengths", measure.digest) is None
    np.testing.assert_array_equal(open_columns(leaf, pack, measure)["bytes"], pack.row_size)
    assert measure.asked == [(0, 20), (0, 20)]
    assert path.read_bytes() == whole


def test_a_file_of_another_leaf_is_not_believed(corpus):
    leaf, pack, folder = corpus
    measure = Lengths()
    open_columns(leaf, pack, measure)
    (path,) = side_files(folder)
    other = make_leaf("nemo", manifest=[write_rows(folder / "n.json", rows_of(10, "us"))])
    other_pack = open_pack_of(other, folder)
    side_path(other, other_pack, "lengths", measure.digest).write_bytes(path.read_bytes())
    assert find_columns(other, other_pack, "lengths", measure.digest) is None
    side_path(leaf, pack, "lengths", "1" * 16).write_bytes(path.read_bytes())
    assert find_columns(leaf, pack, "lengths", "1" * 16) is None


def test_one_works_and_the_others_wait(corpus):
    leaf, pack, _ = corpus
    entered, release = threading.Event(), threading.Event()

    class Slow(Lengths):
        def of_rows(self, leaf, pack, stretch):
            entered.set()
            assert release.wait(20)
            return super().of_rows(leaf, pack, stretch)

    slow, other = Slow(), Lengths()
    threads = [threading.Thread(target=open_columns, args=(leaf, pack, slow))]
    threads[0].start()
    assert entered.wait(20)
    with pytest.raises(BuildError, match="Waited"):
        open_columns(leaf, pack, other, wait_seconds=0.2)
    threads.append(threading.Thread(target=open_columns, args=(leaf, pack, other)))
    threads[1].start()
    time.sleep(0.2)
    release.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert (len(slow.asked), len(other.asked)) == (1, 0)


def test_a_folder_that_cannot_be_written_is_named(corpus, monkeypatch):
    leaf, pack, _ = corpus
    monkeypatch.setattr(side_columns, "side_path", lambda *_: Path("/proc/no/a.arrow"))
    with pytest.raises(BuildError, match=r"cannot be written.*/proc/no"):
        open_columns(leaf, pack, Lengths())


def test_a_disk_that_is_full_is_said(corpus, monkeypatch):
    leaf, pack, folder = corpus

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BuildError, match=r"No space left.*\.arrow"):
        open_columns(leaf, pack, Lengths())
    monkeypatch.undo()
    assert not side_files(folder)
    assert not [path for path in folder.rglob("*") if path.suffix == ".tmp"]


def test_a_kill_leaves_nothing_half_written(corpus, tmp_path):
    leaf, pack, folder = corpus
    script = tmp_path / "killed.py"
    script.write_text(
        "import sys, time, pickle, os\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "import numpy as np\n"
        "from playhead.tokens import side_columns\n"
        "leaf, pack = pickle.load(open(sys.argv[1], 'rb'))\n"
        "class Lengths:\n"
        "    kind, digest, runs_in_threads = 'lengths', '0' * 16, True\n"
        "    columns = {'bytes': np.uint32}\n"
        "    def of_rows(self, leaf, pack, stretch):\n"
        "        return {'bytes': pack.row_size[slice(*stretch)]}\n"
        "from playhead.storage import atomic\n"
        "def hold(descriptor):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "atomic.os.fsync = hold\n"
        "side_columns.open_columns(leaf, pack, Lengths())\n"
    )
    (tmp_path / "args").write_bytes(pickle.dumps((leaf, pack)))
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "args")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    process.stdout.close()
    assert not side_files(folder)
    measure = Lengths()
    open_columns(leaf, pack, measure, wait_seconds=10)
    assert measure.asked == [(0, 10)]
    assert len(side_files(folder)) == 1


def test_a_script_without_a_guard_is_not_run_again(corpus, tmp_path):
    """Processes that count must not run the training script, which may not guard itself."""
    write_rows(tmp_path / "m.json", rows_of(300))
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "print('the script runs', flush=True)\n"
        "from pathlib import Path\n"
        "from playhead.tokens import jobs\n"
        "from playhead.tokens.count import open_token_columns\n"
        "from playhead.tokens.encoding import Encoding\n"
        "from playhead.tokens.tokenizer import load_tokenizer\n"
        "from support.leaves import make_leaf\n"
        "from support.token_models import Words\n"
        "from support.token_rows import open_pack_of\n"
        "jobs._ROWS, jobs._FEW_ROWS = 16, 32\n"
        "folder = Path(sys.argv[1])\n"
        "leaf = make_leaf('nemo', manifest=[folder / 'm.json'])\n"
        "pack = open_pack_of(leaf, folder / 'x')\n"
        "class Mine(Words):\n"
        "    pass\n"
        "for words in (Words(), Mine(base=1)):\n"
        "    encoding = Encoding(load_tokenizer(words), 'plain')\n"
        "    print(open_token_columns(leaf, pack, encoding, workers=2)['tokens'].sum())\n"
        "assert sys.modules['__main__'].Mine is Mine\n"
    )
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = map(json.loads, (tmp_path / "m.json").read_text().splitlines())
    tokens = sum(len(row["text"].split()) for row in rows)
    assert ran.stdout.splitlines() == ["the script runs", str(tokens), str(tokens)]
