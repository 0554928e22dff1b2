from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from playhead.demo.model import TinyCtc, edits

short = st.text("abc", max_size=6)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TinyCtc("01")


def test_what_follows_a_sample_in_its_batch_does_not_change_it(model):
    torch.manual_seed(1)
    audio = torch.randn(1, 4000) * 0.1
    # It ends in silence, so that what the transform mirrors at its end is silence too.
    audio[:, -256:] = 0
    longer = torch.cat([audio, torch.zeros(1, 4000)], 1)
    lengths = torch.tensor([4000])
    alone, _ = model(audio, lengths)
    padded, frames = model(longer, lengths)
    assert frames.tolist() == [len(alone)] == [32]
    torch.testing.assert_close(alone, padded[:32])


def test_a_loss_is_the_mean_of_its_samples(model):
    torch.manual_seed(1)
    audio, lengths = torch.randn(3, 4000) * 0.1, torch.tensor([4000, 4000, 4000])
    texts = ["0", "01", "110"]
    alone = [model.loss(audio[i : i + 1], lengths[i : i + 1], texts[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(model.loss(audio, lengths, texts), sum(alone) / 3)


def test_characters_outside_the_alphabet_are_left_out(model):
    audio, lengths = torch.ones(1, 4000) * 0.1, torch.tensor([4000])
    torch.testing.assert_close(
        model.loss(audio, lengths, ["0x1"]), model.loss(audio, lengths, ["01"])
    )


def test_it_learns_two_tones(model):
    time = torch.arange(3200) / 8000
    audio = torch.stack([torch.sin(2 * torch.pi * f * time) * 0.2 for f in (500, 1500)]).float()
    lengths, texts = torch.tensor([3200, 3200]), ["0", "1"]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        model.loss(audio, lengths, texts).backward()
        optimizer.step()
    assert model.transcribe(audio, lengths) == texts


@given(short, short, short)
def test_edits_are_a_distance(a, b, c):
    assert (edits(a, b) == 0) == (a == b)
    assert edits(a, b) == edits(b, a)
    assert edits(a, c) <= edits(a, b) + edits(b, c)
    assert abs(len(a) - len(b)) <= edits(a, b) <= max(len(a), len(b))
