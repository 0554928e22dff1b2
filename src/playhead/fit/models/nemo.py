"""Models of NeMo: trained ones, and those that a class and a config make."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from playhead.errors import ConfigError, FitError, MissingExtraError, SourceNotFoundError
from playhead.fit.models.lightning_module import make_trainer
from playhead.fit.models.quiet import quiet
from playhead.fit.models.schema_model import SchemaModel, declared_model
from playhead.fit.probing.fault import words
from playhead.user_code import load_module

if TYPE_CHECKING:
    from collections.abc import Generator

    from playhead.fit.model import ModelSource
    from playhead.fit.training import Training

__all__ = ["open_class", "open_pretrained"]

_DATA = ("train_ds", "validation_ds", "test_ds")


def open_pretrained(source: ModelSource, training: Training) -> SchemaModel:
    """Open a trained model of NeMo.

    Parameters
    ----------
    source
        Its name: the path of a `.nemo` file, or a name that NeMo downloads.
    training
        How it is to be trained.

    Raises
    ------
    SourceNotFoundError
        If there is no such file.
    MissingExtraError
        If NeMo is not installed.
    FitError
        If NeMo cannot open it, or it does not declare its batches.
    """
    path = Path(source.name)
    is_file = source.name.endswith(".nemo")
    if is_file and not path.is_file():
        raise SourceNotFoundError(
            "the model does not exist", where=source.name, fix="Correct the path"
        )
    with _told(source.name):
        base = _class_of("nemo.collections.asr.models.ASRModel")
        _silence_nemo()
        options: dict[str, Any] = {"map_location": "cpu", "trainer": _trainer()}
        if is_file:
            module = base.restore_from(str(path), **options)
        else:
            module = base.from_pretrained(source.name, **options)
    return declared_model(module, source, training, {})


def open_class(source: ModelSource, training: Training) -> SchemaModel:
    """Make a model of a class and the `model` section of a config.

    Parameters
    ----------
    source
        Names the class, such as `nemo.collections.asr.models.EncDecCTCModelBPE`, and the config.
    training
        How it is to be trained.

    Raises
    ------
    ConfigError
        If there is no such class, or the config has no `model`.
    SourceNotFoundError
        If there is no such config.
    MissingExtraError
        If NeMo is not installed and the class is one of it.
    FitError
        If the class does not take the config, or does not declare its batches.
    """
    if source.config is None:
        raise ConfigError(
            f"the class {source.name} has no config",
            where="--module-name",
            fix="Name it with --config-path",
        )
    config = _config_of(source.config)
    with _told(source.name):
        kind = _class_of(source.name)
        if source.name.startswith("nemo."):
            _silence_nemo()
        module = _made(kind, config["model"])
    data: Any = ((config.get("data") or {}).get("train_ds")) or {}
    return declared_model(module, source, training, data)


def _config_of(path: str) -> dict[str, Any]:
    from omegaconf import OmegaConf  # noqa: PLC0415  (slow, and for these models alone)

    try:
        config: Any = OmegaConf.load(path)
        OmegaConf.resolve(config)
    except FileNotFoundError:
        raise SourceNotFoundError(
            "the config does not exist", where=path, fix="Correct the path"
        ) from None
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"the config cannot be read: {reason}",
            where=path,
            fix="Give the config that the model is trained with",
        ) from error
    if not (OmegaConf.is_dict(config) and OmegaConf.is_dict(config.get("model"))):
        raise ConfigError(
            "the config has no section `model`",
            where=path,
            fix="Give the config that the model is trained with",
        )
    return cast("dict[str, Any]", config)


def _made(kind: Any, config: Any) -> Any:
    from omegaconf import OmegaConf, open_dict  # noqa: PLC0415  (as above)

    if not any(parent.__name__ == "ModelPT" for parent in kind.__mro__):
        # Those of `speechlm2` take plain values.
        return kind(OmegaConf.to_container(config, resolve=True))
    with open_dict(config):
        for name in _DATA:
            # Batches are made up: data that the config names need not be there.
            if OmegaConf.is_dict(config.get(name)):
                config[name].defer_setup = True
    return kind(cfg=config, trainer=_trainer())


def _class_of(dotted: str) -> Any:
    module_name, _, name = dotted.rpartition(".")
    package = module_name.partition(".")[0]
    if package == "nemo" and importlib.util.find_spec(package) is None:
        raise MissingExtraError(
            f"NeMo is needed for {dotted}",
            where="--module-name",
            fix="Run pip install nemo-toolkit",
        )
    if not module_name:
        raise ConfigError(
            f"{dotted!r} names no class",
            where="--module-name",
            fix="Write its module too, such as nemo.collections.asr.models.EncDecCTCModelBPE",
        )
    found = getattr(load_module(module_name, "--module-name"), name, None)
    if not isinstance(found, type):
        raise ConfigError(
            f"the module {module_name} has no class {name}",
            where="--module-name",
            fix="Correct the name",
        )
    return found


def _trainer() -> Any:
    return make_trainer(load_module("lightning.pytorch", "--module-name"))


def _silence_nemo() -> None:
    logging = load_module("nemo.utils", "--module-name").logging
    logging.setLevel(logging.CRITICAL)


@contextmanager
def _told(name: str) -> Generator[None]:
    """Tell what fails in one line, and nothing else."""
    try:
        with quiet():
            yield
    except (ConfigError, FitError, MissingExtraError):
        raise
    except Exception as error:
        raise FitError(
            f"the model cannot be opened: {words(error)}",
            where=name,
            fix="Open it in Python, which tells where it fails, and correct it",
        ) from error
