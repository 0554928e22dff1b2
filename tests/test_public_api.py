"""What users import, frozen: a name leaves or joins it on purpose."""

from __future__ import annotations

import inspect

import pytest

import playhead


def test_the_public_names():
    assert playhead.__all__ == sorted(playhead.__all__)
    assert set(playhead.__all__) == {
        "ArchiveError",
        "AudioError",
        "BuildError",
        "ConfigError",
        "DataError",
        "FitError",
        "IndexFileError",
        "IndexMissingError",
        "Loader",
        "ManifestError",
        "MissingExtraError",
        "NotSupportedError",
        "PlanError",
        "PlayheadError",
        "Position",
        "PositionError",
        "RankMismatchError",
        "SourceNotFoundError",
        "StaleIndexError",
        "StorageError",
        "TopologyError",
        "UnknownOptionError",
        "WorkerError",
        "dataloader",
        "register_type",
        "validation_dataloaders",
    }
    for name in playhead.__all__:
        assert getattr(playhead, name) is not None


@pytest.mark.parametrize("call", [playhead.dataloader, playhead.validation_dataloaders])
def test_the_signature_of_the_calls_that_make_loaders(call):
    assert list(inspect.signature(call).parameters) == [
        "config",
        "dataset",
        "section",
        "rank",
        "world_size",
        "mesh",
        "dp_dims",
        "broadcast",
        "tokenizer",
        "strict",
        "overrides",
    ]


def test_every_error_is_an_error_of_ours_and_of_python():
    for name in playhead.__all__:
        thing = getattr(playhead, name)
        if not (isinstance(thing, type) and issubclass(thing, Exception)):
            continue
        assert issubclass(thing, playhead.PlayheadError)
        if thing is not playhead.PlayheadError:
            builtin = [base for base in thing.__mro__ if base.__module__ == "builtins"]
            assert builtin[0] is not Exception
