"""Whatever Lightning saves, and wherever: a resume trains on what would have come next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from support.column_loader import loader
from support.lightning_runs import (
    HOOKS,
    PACKAGES,
    StopError,
    check_exact,
    library,
    run,
)

BATCH_END = ("on_train_batch_end",)
IN_STEPS = {"accumulate_grad_batches": 3, "per_step": 3}
CASES = {
    "endless": ({"step": 1}, {"max_steps": 10}),
    "endless, by epochs": ({"step": 1}, {"limit_train_batches": 4, "max_epochs": 3}),
    "endless, by epochs and steps": ({"step": 1}, {"limit_train_batches": 4, "max_steps": 10}),
    "finite": ({"step": 1, "finite": True, "limit": 200_000_000}, {"max_epochs": 2}),
    "finite, cut short": (
        {"step": 1, "finite": True},
        {"limit_train_batches": 0.3, "max_epochs": 2},
    ),
    "finite, by steps": ({"step": 1, "finite": True}, {"limit_train_batches": 4, "max_steps": 10}),
    "accumulated": ({"step": 3}, dict(max_steps=4, **IN_STEPS)),
    "accumulated, finite": (
        {"step": 3, "finite": True},
        dict(limit_train_batches=6, max_epochs=2, **IN_STEPS),
    ),
    "validated inside steps": (
        {"step": 3},
        dict(limit_train_batches=6, max_epochs=2, val_check_interval=2, validated=True, **IN_STEPS),
    ),
    "validated by batches of all epochs": (
        {"step": 3},
        dict(
            max_steps=4,
            val_check_interval=4,
            check_val_every_n_epoch=None,
            validated=True,
            **IN_STEPS,
        ),
    ),
    "validated every other epoch": (
        {"step": 1},
        {
            "limit_train_batches": 2,
            "max_epochs": 4,
            "check_val_every_n_epoch": 2,
            "validated": True,
        },
    ),
    "loaders made anew": (
        {"step": 1},
        {"limit_train_batches": 3, "max_epochs": 3, "reload_dataloaders_every_n_epochs": 1},
    ),
    "finite loaders made anew": (
        {"step": 1, "finite": True},
        {"limit_train_batches": 3, "max_epochs": 4, "reload_dataloaders_every_n_epochs": 2},
    ),
    "the same batches again and again": (
        {"step": 1, "finite": True},
        {"overfit_batches": 3, "max_epochs": 3},
    ),
    "the same endless batches again": ({"step": 1}, {"overfit_batches": 3, "max_steps": 8}),
}


@pytest.mark.parametrize(("case", "estimated"), [(case, n % 2 > 0) for n, case in enumerate(CASES)])
def test_checkpoints_of_a_run_go_on_as_the_run_did(case, estimated, tmp_path):
    made, options = CASES[case]
    check_exact(
        "lightning", tmp_path, lambda: loader(**made), every=5, estimated=estimated, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("estimated", [False, True], ids=["", "estimated"])
@pytest.mark.parametrize("case", CASES)
def test_each_single_checkpoint_goes_on_as_the_run_did(case, estimated, package, tmp_path):
    made, options = CASES[case]
    for hook in HOOKS:
        if hook == "on_validation_end" and not options.get("validated"):
            continue
        check_exact(
            package,
            tmp_path / hook,
            lambda: loader(**made),
            saved_in=(hook,),
            estimated=estimated,
            **options,
        )


def test_a_module_that_steps_by_itself_begins_its_steps_anew(tmp_path):
    check_exact(
        "lightning", tmp_path, lambda: loader(step=3), every=3, per_step=3, steps_after=3,
        limit_train_batches=6, max_epochs=2, saved_in=BATCH_END,
    )  # fmt: skip


@pytest.mark.parametrize("made", [{"step": 1}, {"step": 1, "finite": True}], ids=str)
def test_a_run_that_was_resumed_goes_on_again_as_exactly(made, tmp_path):
    """Of a checkpoint of an epoch's last batch, Lightning makes an epoch that it never begins."""
    make = lambda: loader(**made)  # noqa: E731
    options = {"limit_train_batches": 2, "max_epochs": 3}
    whole = run("lightning", tmp_path, make, saved_in=BATCH_END, **options)
    for done in (2, 3, 4):
        [first] = tmp_path.glob(f"*.{done}.ckpt")
        folder = tmp_path / str(done)
        run("lightning", folder, make, resumed=first, saved_in=HOOKS, **options)
        for second in sorted(folder.glob("*.ckpt"))[::3]:
            more = int(second.name.split(".")[2])
            again = run("lightning", tmp_path / "again", make, resumed=second, **options)
            assert again.trained == whole.trained[done + more :], second.name
            assert again.end == whole.end, second.name


def test_overfitting_trains_on_the_same_batches_in_every_epoch(tmp_path):
    made = lambda: loader(step=1, finite=True)  # noqa: E731
    outcome = run("lightning", tmp_path, made, overfit_batches=3, max_epochs=3)
    batches = [parts for *_, parts in outcome.trained]
    assert batches[:3] == batches[3:6] == batches[6:]
    assert len({str(parts) for parts in batches}) == 3


@pytest.mark.parametrize("estimated", [False, True], ids=["", "estimated"])
def test_the_other_package_is_as_exact(estimated, tmp_path):
    check_exact(
        "pytorch_lightning",
        tmp_path,
        lambda: loader(step=3),
        every=5,
        estimated=estimated,
        limit_train_batches=6,
        max_epochs=2,
        **IN_STEPS,
    )


def test_a_checkpoint_of_one_package_is_one_of_the_other(tmp_path):
    make = lambda: loader(step=1)  # noqa: E731
    whole = run("lightning", tmp_path, make, saved_in=BATCH_END, max_steps=6)
    saved = tmp_path / "004.on_train_batch_end.4.ckpt"
    again = run("pytorch_lightning", tmp_path / "again", make, resumed=saved, max_steps=6)
    assert again.trained == whole.trained[4:]
    assert again.end == whole.end


def test_whoever_saves_before_the_callback_is_told_saves_the_same(tmp_path):
    check_exact(
        "lightning", tmp_path, lambda: loader(step=3), every=3, saves_first=True, max_steps=4,
        saved_in=BATCH_END, **IN_STEPS,
    )  # fmt: skip


@pytest.mark.parametrize("stop_at", [1, 5, 6, 7])
@pytest.mark.parametrize("step", [1, 3])
def test_a_checkpoint_of_an_exception_goes_on_at_its_step(step, stop_at, tmp_path):
    pl = library("lightning")
    options = {"limit_train_batches": 6, "max_epochs": 2, "accumulate_grad_batches": step}
    make = lambda: loader(step=step, finite=True)  # noqa: E731
    whole = run("lightning", tmp_path, make, **options)
    on_exception = pl.callbacks.OnExceptionCheckpoint(tmp_path)
    run("lightning", tmp_path, make, callbacks=(on_exception,), stop_at=stop_at, **options)
    saved = tmp_path / "on_exception.ckpt"
    again = run("lightning", tmp_path / "again", make, resumed=saved, **options)
    assert again.trained == whole.trained[(stop_at - 1) // step * step :]
    assert again.end == whole.end
    assert again.logged == whole.logged[len(whole.logged) - len(again.logged) :]


@pytest.mark.parametrize(
    "saving",
    [
        {"every_n_train_steps": 2, "save_top_k": -1},
        {"train_time_interval": timedelta(0), "save_top_k": -1},
        {"every_n_epochs": 1, "save_top_k": -1, "save_last": True},
        {"monitor": "loss", "save_top_k": 2, "every_n_train_steps": 1},
        {"save_top_k": -1, "save_on_train_epoch_end": True},
    ],
    ids=" ".join,
)
def test_what_the_checkpoint_callback_saves_is_exact(saving, tmp_path):
    """Those of a time are taken inside steps too."""
    pl = library("lightning")
    options = {"limit_train_batches": 6, "max_epochs": 2, "accumulate_grad_batches": 3}
    options |= {"validated": True, "val_check_interval": 2}
    make = lambda: loader(step=3)  # noqa: E731
    keep = pl.callbacks.ModelCheckpoint(tmp_path, **saving)
    whole = run("lightning", tmp_path, make, callbacks=(keep,), **options)
    saved = sorted(tmp_path.glob("*.ckpt"))
    assert saved
    for checkpoint in saved:
        again = run("lightning", tmp_path / "again", make, resumed=checkpoint, **options)
        assert again.trained == whole.trained[len(whole.trained) - len(again.trained) :]
        assert len(again.trained) % 3 == 0
        assert again.end[:2] == whole.end[:2]


def leaves_epochs_at(number):
    """A callback whose module says, of this batch of an epoch, that its rest is skipped."""

    class Skip(library("lightning").Callback):
        def on_train_start(self, trainer, pl_module):
            pl_module.on_train_batch_start = lambda _, batch_idx: (
                -1 if batch_idx == number else None
            )

    return Skip()


def test_an_epoch_that_is_left_begins_its_next_step_anew(tmp_path):
    options = {"callbacks": (leaves_epochs_at(4),), "max_epochs": 3, "limit_train_batches": 9}
    outcome = check_exact(
        "lightning", tmp_path, lambda: loader(step=3), saved_in=("on_train_epoch_end",),
        accumulate_grad_batches=3, **options,
    )  # fmt: skip
    steps = [[step for step, *_ in parts] for *_, parts in outcome.trained]
    assert steps == [[0], [0], [0], [1], [1], [1], [1], [2], [2], [2], [2], [3]]


@pytest.mark.parametrize("left_at", [1, 2])
def test_epochs_that_were_left_do_not_shift_those_after_them(left_at, tmp_path):
    check_exact(
        "lightning", tmp_path, lambda: loader(step=1), saved_in=BATCH_END, every=2,
        callbacks=(leaves_epochs_at(left_at),), max_epochs=5, limit_train_batches=4,
    )  # fmt: skip


def test_a_trainer_that_fits_again_goes_on(tmp_path):
    one = loader(step=1)
    first = run("lightning", tmp_path, lambda: one, max_steps=5)
    second = run("lightning", tmp_path, lambda: one, max_steps=5)
    whole = run("lightning", tmp_path, lambda: loader(step=1), max_steps=10)
    batches = [parts for outcome in (first, second) for *_, parts in outcome.trained]
    assert batches == [parts for *_, parts in whole.trained]


def test_what_a_search_for_a_rate_fetched_is_trained_on_after_it(tmp_path):
    pl = library("lightning")
    one, plain = loader(step=1), run("lightning", tmp_path, lambda: loader(step=1), max_steps=5)
    search = pl.callbacks.LearningRateFinder(num_training_steps=3, early_stop_threshold=None)
    found = run("lightning", tmp_path, lambda: one, max_steps=5, callbacks=(search,))
    assert [parts for *_, parts in found.trained[-5:]] == [parts for *_, parts in plain.trained]


def test_a_checkpoint_is_taken_after_training_too(tmp_path):
    whole = run("lightning", tmp_path, lambda: loader(step=1), max_steps=8)
    run("lightning", tmp_path, lambda: loader(step=1), max_steps=5, saved_after="last.ckpt")
    again = run(
        "lightning", tmp_path, lambda: loader(step=1), max_steps=8, resumed=tmp_path / "last.ckpt"
    )
    assert again.trained == whole.trained[5:]


@pytest.mark.parametrize("options", [{"fast_dev_run": 2}, {"num_sanity_val_steps": 2}])
def test_a_trial_run_and_a_sanity_check_do_no_harm(options, tmp_path):
    plain = run("lightning", tmp_path, lambda: loader(step=1), max_steps=2)
    tried = run(
        "lightning", tmp_path, lambda: loader(step=1), max_steps=2, validated=True, **options
    )
    assert tried.trained == plain.trained
    assert tried.validated


def test_a_stop_leaves_the_loader_behind_its_last_whole_step(tmp_path):
    one = loader(step=3)
    run("lightning", tmp_path, lambda: one, stop_at=6, max_steps=9, accumulate_grad_batches=3)
    outcome = run("lightning", tmp_path, lambda: one, max_steps=2, accumulate_grad_batches=3)
    assert [parts[0][0] for *_, parts in outcome.trained] == [1, 1, 1, 2, 2, 2]
    assert StopError
