"""Of many micro-batches, the few whose memory matters."""

from __future__ import annotations

from playhead.report.worst import Bulk, Worst, worst_of


def found(*shapes):
    return [
        Worst(step=step, slot=0, bulk=Bulk(*shape), cost=1, tokens=None, leaves=(0,))
        for step, shape in enumerate(shapes)
    ]


def test_batches_that_are_alike_do_not_hide_others():
    alike = [(600.0, 380.0, 8, 46)] * 50
    others = [(590.0 - samples, 300.0, 5, samples) for samples in range(20, 29)]
    worst = worst_of(found(*alike, *others))
    assert [one.bulk.samples for one in worst] == [46, *range(20, 29)]
    assert [one.step for one in worst][:2] == [0, 50]


def test_the_extremes_are_there_however_little_they_cost():
    dear = [(600.0 + number, 300.0, 10, 100 + number) for number in range(20)]
    padded, longest, many = (100.0, 485.0, 3, 9), (90.0, 60.0, 60, 1), (80.0, 70.0, 1, 400)
    shapes = [one.bulk for one in worst_of(found(padded, *dear, longest, many))]
    assert [*shapes[-3:]] == [padded, longest, many]
    assert len(shapes) == 10
    assert shapes[:7] == sorted(dear, reverse=True)[:7]


def test_where_all_have_one_size_there_are_ten_nevertheless():
    worst = worst_of(found(*[(float(cost), 1.0, 1, 4) for cost in range(30)]))
    assert [one.bulk.weight for one in worst] == [float(cost) for cost in range(29, 19, -1)]
    assert worst_of([]) == ()
