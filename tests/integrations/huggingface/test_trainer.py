"""A Trainer trains on what a loader gives, and goes on where its checkpoint stands."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest
import torch
from transformers import Seq2SeqTrainer, TrainerCallback

from playhead import ConfigError, TopologyError
from playhead.inspect.inspecting import inspect_checkpoint
from playhead.integrations.huggingface import PlayheadCallback, last_checkpoint, training_batches
from support.small_whisper import WhisperInputs, digest_of


class CountingInputs(WhisperInputs):
    """Counts the batches that are read."""

    def __init__(self):
        super().__init__()
        self.read = 0

    def __getitem__(self, cuts):
        self.read += 1
        return super().__getitem__(cuts)


def weights_of(trainer):
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def expected(loader, steps):
    """What is trained on at each step: two batches."""
    batches = islice(iter(loader), 2 * steps)
    return [(number // 2, digest_of(batch)) for number, batch in enumerate(batches)]


def test_every_step_is_on_the_batches_that_the_loader_hands_out(make_loader, make_trainer):
    trainer = make_trainer(make_loader(), max_steps=5)
    trainer.train()
    assert trainer.seen == expected(make_loader(), 5)


def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(
    make_loader, make_trainer, tmp_path
):
    whole = make_trainer(make_loader(), dropout=0.2, max_steps=7, save_steps=3)
    whole.train()
    dataset = CountingInputs()
    resumed = make_trainer(make_loader(dataset), dropout=0.2, max_steps=7, save_steps=100)
    resumed.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-3"))
    assert resumed.seen == whole.seen[6:]
    assert dataset.read == len(resumed.seen), "what was trained on was read again, or more"
    assert_same_weights(weights_of(resumed), weights_of(whole))
    losses, epochs = (
        [
            [line[name] for line in run.state.log_history if "loss" in line]
            for run in (whole, resumed)
        ]
        for name in ("loss", "epoch")
    )
    assert losses[0] == losses[1]
    assert epochs[0] == epochs[1]


def test_a_checkpoint_holds_the_position_of_the_last_step_trained(
    make_loader, make_trainer, state_of, tmp_path
):
    make_trainer(make_loader(), max_steps=4, save_steps=2).train()
    loader = make_loader()
    for step in (2, 4):
        state = state_of(tmp_path / "out" / f"checkpoint-{step}")
        assert state.global_step == state.position["step"] == step
        loader.load_state_dict(state.position)
        assert digest_of(next(iter(loader))) == expected(make_loader(), step + 1)[-2][1]
    # The config of the model, which is beside it, is none of training.
    summary = inspect_checkpoint(tmp_path / "out" / "checkpoint-2")
    assert summary.overall.step == 2
    assert not any("config.json" in note for note in summary.notes)


def test_the_three_lines_of_a_trainer_of_ones_own_do_the_same(make_loader, make_trainer):
    class Recipe(Seq2SeqTrainer):
        def get_train_dataloader(self):
            return training_batches(self, make_loader())

        def training_step(self, model, inputs, *more):
            seen.append((self.state.global_step, digest_of(inputs)))
            return super().training_step(model, inputs, *more)

    seen = []
    trainer = make_trainer(None, kind=Recipe, max_steps=3, save_steps=2)
    trainer.train()
    again = make_trainer(None, kind=Recipe, max_steps=3, save_steps=2)
    again.train(resume_from_checkpoint=True)
    assert seen == expected(make_loader(), 3)
    last = make_trainer(None, kind=Recipe, max_steps=3, save_steps=100)
    last.train(resume_from_checkpoint=last_checkpoint(last.args.output_dir)[:-1] + "2")
    assert seen == expected(make_loader(), 3) + expected(make_loader(), 3)[4:]


def test_epochs_of_a_finite_loader_are_its_passes(make_loader, make_trainer, tmp_path):
    loader = make_loader(force_finite=True, shuffle=False)
    steps = len(loader) // 2
    trainer = make_trainer(loader, num_train_epochs=2, save_strategy="epoch")
    trainer.train()
    assert trainer.state.global_step == 2 * steps
    assert {digest for step, digest in trainer.seen if step < steps} == {
        digest for step, digest in trainer.seen if step >= steps
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        f"checkpoint-{number * steps}" for number in (1, 2)
    )


@pytest.mark.parametrize(
    ("accumulation", "beyond"),
    [
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(2, 0, marks=pytest.mark.slow),
        (2, 2),
    ],
)
def test_a_finite_loader_goes_on_within_its_epochs(
    make_loader, make_trainer, state_of, accumulation, beyond
):
    options = {"force_finite": True, "micro_batches_per_step": accumulation}
    steps = len(make_loader(**options)) // accumulation
    stop = steps + beyond
    arguments = {"num_train_epochs": 3, "gradient_accumulation_steps": accumulation}
    whole = make_trainer(make_loader(**options), **arguments, save_steps=stop)
    whole.train()
    epochs = make_trainer(make_loader(**options), **arguments, save_strategy="epoch")
    out = Path(epochs.args.output_dir)
    (out / f"checkpoint-{stop}").rename(out.parent / "kept")
    shutil.rmtree(out)
    epochs.train(resume_from_checkpoint=str(out.parent / "kept"))
    assert epochs.seen == whole.seen[accumulation * stop :]
    assert_same_weights(weights_of(epochs), weights_of(whole))
    left = [number * steps for number in (1, 2, 3) if number * steps > stop]
    assert {path.name for path in out.iterdir()} == {f"checkpoint-{number}" for number in left}
    for number in left:
        state = state_of(out / f"checkpoint-{number}")
        assert (state.global_step, state.epoch) == (number, number / steps)


def test_epochs_have_one_length_wherever_the_loader_stands(make_loader, make_trainer):
    class Stops(TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            control.should_training_stop = state.global_step == self.at
            return control

    options = {"force_finite": True, "micro_batches_per_step": 1}
    arguments = {"num_train_epochs": 2, "gradient_accumulation_steps": 1, "save_steps": 1}
    whole = make_trainer(make_loader(**options), **arguments)
    whole.train()
    loader, stops = make_loader(**options), Stops()
    seen = []
    # The second time it stops in a pass that the loader itself has resumed.
    for after, at in ((None, 2), (2, 4), (4, None)):
        stops.at = at
        trainer = make_trainer(loader, more={"callbacks": [stops]}, **arguments)
        checkpoint = after and f"{trainer.args.output_dir}/checkpoint-{after}"
        trainer.train(resume_from_checkpoint=checkpoint)
        seen += trainer.seen
    assert seen == whole.seen


def test_passes_of_other_lengths_than_the_first_lose_nothing(make_loader, make_trainer):
    # Passes of 41 samples in batches of about 4 s have 6 to 8 steps of one batch, as they fall.
    options = {"force_finite": True, "micro_batches_per_step": 1, "batch_duration": 5.0}
    plain = make_loader(**options)
    passes = [[digest_of(batch) for batch in plain] for _ in range(6)]
    assert len({len(one) for one in passes}) > 1, "the passes have one length"
    trainer = make_trainer(
        make_loader(**options), num_train_epochs=6, gradient_accumulation_steps=1
    )
    trainer.train()
    flow = [digest for one in passes for digest in one]
    count = 6 * len(passes[0])
    assert [digest for _, digest in trainer.seen][: len(flow)] == flow[:count]


def test_a_step_of_another_size_is_refused_with_what_to_set(make_loader, make_trainer):
    loader = make_loader(micro_batches_per_step=4)
    with pytest.raises(ConfigError, match="Set gradient_accumulation_steps=4") as raised:
        make_trainer(loader, max_steps=2).train()
    assert "micro_batches_per_step=2" in str(raised.value)
    assert loader.waits.batches == 0, "a batch was fetched before the error"


def test_a_loader_of_other_ranks_is_refused(make_loader, make_trainer):
    loader = make_loader(places={"rank": 0, "world_size": 2})
    with pytest.raises(TopologyError, match="among 2 processes, and 1 train") as raised:
        make_trainer(loader, max_steps=2).train()
    assert "give use_cpu=True to the training arguments" in str(raised.value)


def test_a_step_that_a_checkpoint_changes_is_refused_for_epochs(make_loader, make_trainer):
    options = {"force_finite": True}
    make_trainer(make_loader(**options), num_train_epochs=1, save_steps=2).train()
    changed = make_trainer(
        make_loader(**options, micro_batches_per_step=None),
        num_train_epochs=1,
    )
    checkpoint = f"{changed.args.output_dir}/checkpoint-2"
    with pytest.raises(ConfigError, match="micro_batches_per_step=2"):
        changed.train(resume_from_checkpoint=checkpoint)


def test_finding_a_batch_size_is_refused(make_loader, make_trainer):
    with pytest.raises(ConfigError, match="auto_find_batch_size"):
        make_trainer(make_loader(), max_steps=2, auto_find_batch_size=True).train()


def test_arguments_that_say_nothing_are_named_once(make_loader, make_trainer):
    trainer = make_trainer(
        make_loader(), max_steps=1, dataloader_num_workers=3, per_device_train_batch_size=4
    )
    with pytest.warns(
        UserWarning, match="^dataloader_num_workers, per_device_train_batch_size of the Training"
    ):
        trainer.train()


def test_a_model_gets_what_its_forward_takes(make_loader, make_trainer):
    for remove, keys in (
        (True, {"input_features", "labels"}),
        (False, {"input_features", "labels", "texts"}),
    ):
        trainer = make_trainer(make_loader(), max_steps=1, remove_unused_columns=remove)
        trainer.train()
        assert trainer.keys == keys


def test_evaluations_between_steps_leave_training_as_it_is(
    make_loader, make_trainer, tmp_path, state_of
):
    sets = {
        name: make_loader(force_finite=True, shuffle=False, micro_batches_per_step=1)
        for name in ("short", "long")
    }
    trainer = make_trainer(
        make_loader(),
        max_steps=6,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_short_loss",
        more={"eval_dataset": sets},
    )
    trainer.train()
    assert trainer.seen == expected(make_loader(), 6)
    losses = [line for line in trainer.state.log_history if "eval_short_loss" in line]
    assert len(losses) == 3
    kept = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert kept == ["checkpoint-4", "checkpoint-6"]
    assert state_of(tmp_path / "out" / "checkpoint-4").position["step"] == 4
    with pytest.raises(ConfigError, match="would not end"):
        trainer.evaluate(make_loader())
    with pytest.raises(ConfigError, match="the loader that is trained on would move it"):
        make_trainer(sets["long"]).evaluate(sets["long"])
    predicted = trainer.predict(sets["short"])
    assert predicted.metrics["test_loss"] == pytest.approx(losses[-1]["eval_short_loss"], rel=0.1)


def test_loggers_get_the_figures_of_the_data(make_loader, make_trainer):
    class Logger(TrainerCallback):
        def on_log(self, args, state, control, logs, **more):
            logged.append(dict(logs))

    logged = []
    trainer = make_trainer(
        make_loader(),
        max_steps=4,
        logging_steps=2,
        more={"callbacks": [Logger(), PlayheadCallback(prefix="speech/", most_leaves=1)]},
    )
    trainer.train()
    training = [logs for logs in logged if "loss" in logs]
    assert [logs["speech/step"] for logs in training] == [2, 4]
    for logs in training:
        assert logs["speech/samples_per_second"] > 0
        assert sum(name.startswith("speech/drift/") for name in logs) == 1
        assert all(isinstance(value, (int, float)) for value in logs.values())
    assert not any(name.startswith("speech/") for name in logged[-1]), "the end of training"


@pytest.mark.slow
def test_callbacks_that_are_restored_from_a_checkpoint_go_on_as_well(make_loader, make_trainer):
    whole = make_trainer(make_loader(), max_steps=5, save_steps=2)
    whole.train()
    resumed = make_trainer(
        make_loader(), max_steps=5, save_steps=1, restore_callback_states_from_checkpoint=True
    )
    resumed.add_callback(PlayheadCallback())
    resumed.train(resume_from_checkpoint=f"{resumed.args.output_dir}/checkpoint-2")
    assert resumed.seen == whole.seen[4:]
    again = make_trainer(make_loader(), max_steps=5)
    again.train(resume_from_checkpoint=f"{again.args.output_dir}/checkpoint-4")
    assert again.seen == whole.seen[8:]


def test_a_checkpoint_without_a_position_begins_the_data_and_says_so(make_loader, make_trainer):
    class Plain(Seq2SeqTrainer):
        def get_train_dataloader(self):
            inputs = [batch for batch, _ in zip(make_loader(), range(4), strict=False)]
            for batch in inputs:
                del batch["texts"]
            return inputs

    make_trainer(None, kind=Plain, max_steps=2, save_steps=2).train()
    trainer = make_trainer(make_loader(), max_steps=4, save_steps=1)
    with pytest.warns(UserWarning, match="the checkpoint of step 2 holds no position"):
        trainer.train(resume_from_checkpoint=True)
    assert [digest for _, digest in trainer.seen] == [
        digest for _, digest in expected(make_loader(), 2)
    ]
    last = make_trainer(make_loader(), max_steps=5)
    last.train(resume_from_checkpoint=f"{last.args.output_dir}/checkpoint-4")
    assert last.seen[0][1] == expected(make_loader(), 3)[4][1]


@pytest.mark.parametrize("finite", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_epoch_that_is_stopped_inside_a_step_leaves_no_batch_out(
    make_loader, make_trainer, finite
):
    class StopsOnce(TrainerCallback):
        stopped = False

        def on_substep_end(self, args, state, control, **more):
            if state.global_step == 2 and not self.stopped:
                self.stopped = control.should_epoch_stop = True
            return control

    def train(*callbacks):
        trainer = make_trainer(
            make_loader(force_finite=finite, micro_batches_per_step=3),
            gradient_accumulation_steps=3,
            more={"callbacks": [*callbacks]},
            **({"num_train_epochs": 2} if finite else {"max_steps": 5}),
        )
        trainer.train()
        return [digest for _, digest in trainer.seen]

    straight, stopped = train(), train(StopsOnce())
    assert len(stopped) > 8
    assert stopped == [*straight[:7], *straight[6:]][: len(stopped)]


def test_a_second_training_goes_on_in_the_data(make_loader, make_trainer):
    trainer = make_trainer(make_loader(), max_steps=2)
    trainer.train()
    trainer.train()
    assert [digest for _, digest in trainer.seen] == [
        digest for _, digest in expected(make_loader(), 4)
    ]


def test_a_callback_on_other_batches_is_refused(make_loader, make_trainer):
    class Whole(Seq2SeqTrainer):
        def get_train_dataloader(self):
            return make_loader()

    trainer = make_trainer(None, kind=Whole, max_steps=2, more={"callbacks": [PlayheadCallback()]})
    with pytest.raises(ConfigError, match=r"Return training_batches\(self, loader\)"):
        trainer.train()


def test_datasets_of_other_kinds_are_a_trainers_own(make_trainer, monkeypatch):
    # What is found by the name of datasets may be a folder of tests.
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)
    row = {"input_features": torch.zeros(8, 200), "labels": torch.tensor([3, 2])}
    trainer = make_trainer(
        [row] * 8, max_steps=1, per_device_train_batch_size=2, more={"eval_dataset": [row] * 2}
    )
    trainer.train()
    assert trainer.evaluate()["eval_loss"] > 0
    assert len(trainer.predict([row]).predictions) > 0


def test_the_last_checkpoint_is_one_that_was_written_to_its_end(tmp_path):
    assert last_checkpoint(tmp_path / "none") is None
    for number, content in ((9, "{}"), (10, "{}"), (11, '{"best'), (12, None), (13, "{}")):
        folder = tmp_path / f"checkpoint-{number}"
        folder.mkdir()
        if content is not None:
            (folder / "trainer_state.json").write_text(content)
    (tmp_path / "checkpoint-13" / "checkpoint-is-incomplete.txt").touch()
    (tmp_path / "checkpoint-best").mkdir()
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
