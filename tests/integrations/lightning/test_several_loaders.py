"""Several loaders that are trained on side by side, combined in every way that Lightning has."""

from __future__ import annotations

import pytest

from playhead.errors import PositionError
from support.column_loader import LEAVES, loader
from support.lightning_runs import check_exact, library, run

LONG = {"step": 1, "finite": True, "limit": 120_000_000}
SHORT = {**LONG, "leaves": LEAVES[1:], "seed": 4}
ENDLESS = {"step": 1, "seed": 5}


def combined(mode, *made):
    return library("lightning").utilities.CombinedLoader([loader(**one) for one in made], mode)


CASES = {
    "a dict, one of them for ever": (
        lambda: {"a": loader(**ENDLESS), "b": loader(**SHORT)},
        {"max_steps": 12},
    ),
    "a list, the short one again": (
        lambda: [loader(**SHORT), loader(**LONG)],
        {"max_epochs": 2},
    ),
    "until the shortest ends": (
        lambda: combined("min_size", ENDLESS, LONG, SHORT),
        {"max_epochs": 3},
    ),
    "none where one has ended": (lambda: combined("max_size", LONG, SHORT), {"max_epochs": 2}),
    "for ever, none where one has ended": (
        lambda: combined("max_size", ENDLESS, SHORT),
        {"max_steps": 9},
    ),
    "accumulated and cut": (
        lambda: {"a": [loader(**{**ENDLESS, "step": 3})], "b": loader(**{**LONG, "step": 3})},
        {"max_epochs": 2, "limit_train_batches": 6, "accumulate_grad_batches": 3, "per_step": 3},
    ),
}


@pytest.mark.parametrize(("case", "estimated"), [(case, n % 2 > 0) for n, case in enumerate(CASES)])
def test_every_one_goes_on_at_its_own_place(case, estimated, tmp_path):
    make, options = CASES[case]
    whole = check_exact(
        "lightning", tmp_path, make, every=5, estimated=estimated, saved_in=("on_train_batch_end",),
        **options,
    )  # fmt: skip
    assert max(len(parts) for *_, parts in whole.trained) > 1


def test_loaders_have_to_be_as_many_as_were_saved(tmp_path):
    make = lambda: [loader(**LONG), loader(**SHORT)]  # noqa: E731
    run("lightning", tmp_path, make, saved_in=("on_train_batch_end",), max_steps=1)
    [saved] = tmp_path.glob("*.ckpt")
    with pytest.raises(PositionError, match="positions of 2 loaders, and training data are of 1"):
        run(
            "lightning",
            tmp_path,
            lambda: loader(**LONG),
            resumed=saved,
            max_steps=2,
            estimated=True,
            max_epochs=1,
        )
