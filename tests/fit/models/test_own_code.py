"""Models of people's own code: what they have, what they lack, and what is told of it."""

from __future__ import annotations

import pytest
import torch

from playhead.errors import ConfigError, FitError
from playhead.fit.bucket import buckets_of
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.training import Training

PLAIN = """
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Linear(1, 1)

        def make_batch(self, batch_size, input_length, output_length):
            return {"audio": torch.ones(batch_size, input_length, 1), "outputs": output_length}

        def training_step(self, batch):
            return self.scale(batch["audio"]).square().mean() * batch["outputs"]

    def factory():
        return Model()

    made = Model()
    nothing = lambda: None
    number = 3
"""
LIGHTNING = """
    import lightning
    import torch
    from torch import nn

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def make_batch(self, batch_size, input_length, output_length):
            return torch.ones(batch_size, input_length, 1)

        def training_step(self, batch, batch_idx):
            loss = self.inner(batch).square().mean()
            self.log("loss", loss)
            self.log_dict({"rate": self.trainer.optimizers and 1.0, "number": batch_idx})
            return {"loss": loss}

        def configure_model(self):
            self.later = nn.Linear(1, 1)

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            steps = self.trainer.estimated_stepping_batches
            scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
            return [optimizer], [{"scheduler": scheduler, "interval": "step"}]

    class Inner(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.scale = nn.Linear(1, 1)

        def forward(self, batch):
            self.log("inside", batch.mean())
            return self.scale(batch)

    class ByHand(Model):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

    class NoStep(lightning.LightningModule):
        def make_batch(self, batch_size, input_length, output_length):
            return None

    class NoOptimizer(Model):
        configure_optimizers = lightning.LightningModule.configure_optimizers
"""


def opened(name, **options):
    return open_model(ModelSource(kind="code", name=name, **options), "cpu", Training())


@pytest.mark.parametrize("thing", ["Model", "factory", "made"])
def test_a_class_a_function_and_an_object_are_models(own_code, thing):
    model = opened(f"{own_code(PLAIN)}:{thing}", ratio=2.0)
    (bucket,) = buckets_of([0.5], model.rule)
    batch = model.make_batch(3, bucket.input_length, bucket.output_length)
    assert batch["audio"].shape == (3, 8000, 1)
    assert batch["outputs"] == 1
    loss = model.loss(batch)
    optimizer = model.optimizer("rmsprop")
    assert isinstance(optimizer, torch.optim.RMSprop)
    loss.backward()
    before = model.module.scale.weight.item()
    optimizer.step()
    assert model.module.scale.weight.item() != before


def test_a_lightning_module_works_without_a_fit(own_code, recwarn):
    model = opened(f"{own_code(LIGHTNING)}:Model")
    optimizer = model.optimizer("adamw")
    assert isinstance(optimizer, torch.optim.SGD)
    # configure_model comes before configure_optimizers, as in a fit.
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 4
    loss = model.loss(model.make_batch(2, 10, 1))
    loss.backward()
    assert loss.ndim == 0
    assert not recwarn.list


def test_lightnings_empty_hooks_are_none(own_code):
    module = own_code(LIGHTNING)
    assert isinstance(opened(f"{module}:NoOptimizer").optimizer("adam"), torch.optim.Adam)
    with pytest.raises(ConfigError, match=r"NoStep has no training_step \(") as told:
        opened(f"{module}:NoStep")
    assert told.value.exit_code == 2


def test_optimizing_by_hand_is_refused(own_code):
    with pytest.raises(ConfigError, match="ByHand optimizes by hand"):
        opened(f"{own_code(LIGHTNING)}:ByHand")


def test_what_a_module_lacks_is_named_at_once(own_code):
    name = f"{own_code('from torch import nn; class_ = nn.Linear(1, 1)')}:class_"
    with pytest.raises(ConfigError) as told:
        opened(name)
    assert str(told.value) == (
        f"The class Linear has no make_batch and no training_step ({name}). "
        "Give it make_batch(batch_size, input_length, output_length) and training_step(batch)."
    )


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("number", "is a int, no nn.Module"),
        ("nothing", "returns None"),
        ("absent", "has no absent"),
    ],
)
def test_what_is_no_model_is_named(own_code, thing, message):
    with pytest.raises(ConfigError, match=message):
        opened(f"{own_code(PLAIN)}:{thing}")


def test_an_error_in_the_code_names_its_line(own_code):
    module = own_code("class Model:\n    def __init__(self, size): pass\n")
    with pytest.raises(ConfigError, match="Give a class or function that needs no arguments"):
        opened(f"{module}:Model")
    module = own_code("import torch\nraise ValueError('no data')\n")
    with pytest.raises(ConfigError, match=rf"ValueError: no data \(.*{module}\.py:2\)"):
        opened(f"{module}:Model")


def test_an_unknown_optimizer_is_named_before_anything_is_trained(own_code):
    source = ModelSource(kind="code", name=f"{own_code(PLAIN)}:Model")
    with pytest.raises(ConfigError, match="There is no optimizer 'novel'"):
        open_model(source, "cpu", Training(optimizer="novel"))


@pytest.mark.parametrize("returned", ["None", "3.0", "{'total': torch.ones(1)}"])
def test_a_step_without_a_loss_is_told_in_one_line(own_code, returned):
    module = own_code(
        PLAIN + f"    class Bad(Model):\n        def training_step(self, b): return {returned}"
    )
    model = opened(f"{module}:Bad")
    with pytest.raises(FitError, match="in which is no loss") as told:
        model.loss(model.make_batch(1, 1, 1))
    assert "\n" not in str(told.value)


def test_attributes_say_how_bounds_become_lengths(own_code):
    module = own_code(
        PLAIN
        + """
    class Text(Model):
        sample_rate = None
        output_sample_rate = 100

    class Talk(Model):
        audio_share = 0.5
        token_seconds = 0.04
        sample_rate = 1000

    class Wrong(Model):
        sample_rate = "16k"
"""
    )
    (bucket,) = buckets_of([(7, 3)], opened(f"{module}:Text").rule)
    assert (bucket.input_length, bucket.output_length) == (7, 300)
    (bucket,) = buckets_of([10], opened(f"{module}:Talk").rule)
    assert (bucket.input_length, bucket.output_length) == (5 * 40, 5)
    (bucket,) = buckets_of([10], opened(f"{module}:Talk", audio_share=0.8).rule)
    assert (bucket.input_length, bucket.output_length) == (8 * 40, 2)
    with pytest.raises(ConfigError, match=r"share of a bucket is 1\.5"):
        opened(f"{module}:Talk", audio_share=1.5)
    with pytest.raises(ConfigError, match="sample_rate is '16k'"):
        opened(f"{module}:Wrong")
