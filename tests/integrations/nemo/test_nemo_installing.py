"""Models of NeMo call Playhead once it is installed, and NeMo again after that."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from integrations.nemo.fake_nemo import HOME, MODEL, NAME, PACKAGE, build, theirs
from playhead.errors import ConfigError, MissingExtraError
from playhead.integrations import nemo


@pytest.fixture
def modules(monkeypatch):
    yield build(monkeypatch)
    nemo.uninstall()


def functions(modules, *names):
    """What modules hold by the name; what Playhead put there stands for its function."""
    held = [vars(modules[name])[NAME] for name in names]
    return [getattr(function, "__wrapped__", function) for function in held]


OURS = nemo.get_lhotse_dataloader_from_config


def test_all_modules_that_imported_the_name_call_playhead(modules):
    nemo.install()
    assert functions(modules, HOME, PACKAGE, MODEL) == [OURS] * 3


def test_modules_imported_later_get_it_by_name(modules, monkeypatch):
    nemo.install()
    later = ModuleType("nemo.collections.tts.models.later")
    exec(f"from {PACKAGE} import {NAME}\nfrom {HOME} import {NAME} as other", vars(later))
    assert functions({"later": later}, "later") == [OURS]
    assert vars(later)["other"] is vars(later)[NAME]
    monkeypatch.setitem(sys.modules, later.__name__, later)
    nemo.uninstall()
    assert vars(later)[NAME] is theirs


def test_models_of_ones_own_are_found_and_other_functions_of_the_name_left_alone(
    modules, monkeypatch
):
    mine, other = ModuleType("mine"), ModuleType("other")
    setattr(mine, NAME, theirs)
    setattr(other, NAME, different := lambda: None)
    monkeypatch.setitem(sys.modules, "mine", mine)
    monkeypatch.setitem(sys.modules, "other", other)
    nemo.install()
    assert functions({"mine": mine}, "mine") == [OURS]
    assert vars(other)[NAME] is different


def test_who_imported_playheads_function_keeps_it(modules, monkeypatch):
    mine = ModuleType("mine")
    setattr(mine, NAME, OURS)
    monkeypatch.setitem(sys.modules, "mine", mine)
    nemo.install()
    nemo.uninstall()
    assert vars(mine)[NAME] is OURS


def test_uninstalling_gives_everybody_their_own_back(modules):
    nemo.install()
    nemo.install()
    nemo.uninstall()
    assert functions(modules, HOME, PACKAGE, MODEL) == [theirs] * 3
    assert nemo.get_lhotse_dataloader_from_config is not theirs
    nemo.uninstall()
    nemo.install()
    assert functions(modules, MODEL) == [OURS]


def test_a_second_call_finds_what_was_imported_in_between_by_another_way(modules):
    nemo.install()
    setattr(modules[MODEL], NAME, theirs)
    nemo.install()
    assert functions(modules, MODEL) == [OURS]


def test_modules_that_load_lazily_are_not_asked(modules, monkeypatch):
    class Lazy(ModuleType):
        def __getattr__(self, name):
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    monkeypatch.setitem(sys.modules, "blocked", None)
    nemo.install()


def test_transcribing_stays_with_nemo(modules):
    nemo.install()
    make = vars(modules[MODEL])[NAME]

    def _setup_transcribe_dataloader():
        return [make(each, 0, 1, None) for each in [{"manifest_filepath": "of no length.json"}]]

    assert _setup_transcribe_dataloader() == ["NeMo's own"]
    assert make({"do_transcribe": True}, global_rank=0, world_size=1, dataset=None) == "NeMo's own"
    with pytest.raises(ConfigError, match="No data are named"):
        make({"manifest_filepath": None}, 0, 1, None)


def test_without_nemo_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "nemo"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"NeMo is not installed .* Run pip install 'nemo"):
        nemo.install()


def test_a_nemo_without_these_dataloaders_is_told_apart(modules, monkeypatch):
    delattr(modules[HOME], NAME)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    with pytest.raises(MissingExtraError, match="no dataloaders of Lhotse that can be imported"):
        nemo.install()


def test_importing_it_needs_no_nemo():
    code = "import sys, playhead.integrations.nemo; print('nemo' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
