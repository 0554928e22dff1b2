"""Train a CTC model of NeMo on loaders of Playhead; started again, it goes on where it stopped.

    python examples/train_nemo.py config.yaml

The config is NeMo's, with sections `model`, `trainer` and `exp_manager`; of the last,
`resume_if_exists` and `resume_ignore_no_checkpoint` are true.
"""

import sys

import lightning.pytorch as pl
from nemo.collections.asr.models import EncDecCTCModelBPE
from nemo.utils.exp_manager import exp_manager
from nemo.utils.trainer_utils import resolve_trainer_cfg
from omegaconf import OmegaConf

from playhead.integrations.lightning import PlayheadCallback
from playhead.integrations.nemo import install


def main(path: str) -> None:
    """Train as a config says."""
    config = OmegaConf.load(path)
    pl.seed_everything(config.model.train_ds.seed)  # NeMo's own loader did that, unasked
    install()
    trainer = pl.Trainer(**resolve_trainer_cfg(config.trainer), callbacks=[PlayheadCallback()])
    exp_manager(trainer, config.exp_manager)
    model = EncDecCTCModelBPE(cfg=config.model, trainer=trainer)
    trainer.fit(model)


if __name__ == "__main__":
    main(sys.argv[1])
