"""All transforms in one blend, by the real index, plan and fetch."""

from __future__ import annotations

import pytest

import playhead
from playhead.blend.transforms import TRANSFORMS
from support.talk_cuts import FORMS
from support.told import Told, Words, token_section, told

NAMES = [name for name, form in FORMS.items() if form.type in TRANSFORMS]


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transforms")
    made = []
    for name in NAMES:
        place = folder / str(len(made))
        place.mkdir()
        entry = {**FORMS[name].write(place), "weight": 1.0}
        # The prompt wants something that the user says.
        if FORMS[name].kind == "cut":
            entry["tags"] = {"context": "listen"}
        made.append(entry)
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


def test_a_pass_has_every_sample_once(entries):
    facts = told(token_section(*entries), Words())
    assert len(facts) == sum(FORMS[name].num or 0 for name in NAMES)
    talks = [one for one in facts if "turns" in one]
    assert len(talks) == 10 * sum(
        TRANSFORMS[FORMS[name].type].kind == "conversation" for name in NAMES
    )
    assert all(one["duration"] > 0 for one in facts if "turns" not in one)


def test_what_is_resumed_goes_on(entries):
    config = token_section(*entries, force_finite=False, shuffle=True)

    def loader():
        return playhead.dataloader(config, dataset=Told(), tokenizer=Words())

    first = loader()
    batches = iter(first)
    for _ in range(5):
        next(batches)
    state = first.state_dict()
    expected = [next(batches)["digests"] for _ in range(8)]
    second = loader()
    second.load_state_dict(state)
    batches = iter(second)
    assert [next(batches)["digests"] for _ in range(8)] == expected
