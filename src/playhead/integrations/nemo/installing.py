"""Makes NeMo's models use loaders of Playhead: the name that they call is replaced."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from typing import TYPE_CHECKING, Any

from playhead.errors import MissingExtraError
from playhead.integrations.nemo.loading import get_lhotse_dataloader_from_config
from playhead.integrations.nemo.whole_batches import give_back_broadcasts, take_broadcasts

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["install", "uninstall"]

_NAME = "get_lhotse_dataloader_from_config"
_HOME = "nemo.collections.common.data.lhotse.dataloader"
# NeMo's own function, while it is replaced.
_theirs: dict[str, Callable[..., Any]] = {}


# Not the function itself: who imported that from here keeps it when NeMo's comes back.
@functools.wraps(get_lhotse_dataloader_from_config)
def _ours(config: Any, *arguments: Any, **options: Any) -> Any:
    make = get_lhotse_dataloader_from_config
    if config.get("do_transcribe") or _is_for_transcribing():
        make = _theirs[_NAME]
    return make(config, *arguments, **options)


def _is_for_transcribing() -> bool:
    """Whether `model.transcribe()` asks, whose manifests claim that everything lasts 28 hours."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "_setup_transcribe_dataloader":
            return True
        frame = frame.f_back
    return False


def install() -> None:
    """Let NeMo's models make their loaders with Playhead, those imported later too.

    Call it after your imports and before a model sets up its data. Every module that has imported
    NeMo's `get_lhotse_dataloader_from_config` by name has Playhead's from now on, modules of your
    own too; where the name is imported later, it is Playhead's. NeMo's `DataModule` has a loader on
    every rank, and sends no batches. Transcribing stays with NeMo's own loaders: there is nothing
    to go on with. Calling it again changes nothing more.

    Raises
    ------
    MissingExtraError
        If NeMo is not installed, or cannot be imported.
    """
    home = _imported()
    found = getattr(home, _NAME)
    if found is not _ours:
        _theirs[_NAME] = found
    _replace(_theirs[_NAME], _ours)
    take_broadcasts()


def uninstall() -> None:
    """Give NeMo's models their own function back; loaders that were made stay as they are."""
    theirs = _theirs.pop(_NAME, None)
    if theirs is not None:
        _replace(_ours, theirs)
        give_back_broadcasts()


def _replace(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    for module in list(sys.modules.values()):
        # What a module holds, rather than its attribute: asking some for that makes them load.
        if getattr(module, "__dict__", {}).get(_NAME) is old:
            setattr(module, _NAME, new)


def _imported() -> ModuleType:
    missing = ""
    try:
        home = importlib.import_module(_HOME)
        if hasattr(home, _NAME):
            return home
    except ImportError as error:
        missing = f": {error}"
    if importlib.util.find_spec("nemo") is None:
        what = "NeMo is not installed"
    else:
        what = f"NeMo has no dataloaders of Lhotse that can be imported{missing}"
    raise MissingExtraError(
        what, where="playhead.integrations.nemo", fix="Run pip install 'nemo-toolkit[asr]'"
    )
