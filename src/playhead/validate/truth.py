"""The phase groundtruth: what belongs to a pass, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.validate.meta import RunMeta, meta_path, write_meta
from playhead.validate.opening import config_digest, open_truth
from playhead.validate.places import leaf_names, leaf_words, places_of
from playhead.validate.row_log import RowLog
from playhead.validate.rows import BatchRow, log_path
from playhead.validate.whole_pass import samples_of_pass

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.validate.options import PhaseOptions

__all__ = ["tell_truth"]

_SAMPLES_OF_A_LINE = 1000


def tell_truth(options: PhaseOptions, *, say: Callable[[str], None]) -> RunMeta:
    """Write down every sample of a pass, as `playhead.validate.whole_pass` finds them.

    Parameters
    ----------
    options
        What is asked for.
    say
        Told what people should know, in a sentence.

    Raises
    ------
    ConfigError
        If there is no whole pass.
    PlayheadError
        What goes wrong while the config is opened.
    """
    opened = open_truth(options, say=say)
    planning = opened.planning
    seed = opened.options.seed
    assert isinstance(seed, int), "configs that draw their seed are read with another"
    words, names = leaf_words(planning), leaf_names(planning)
    blocks = samples_of_pass(planning, seed=seed)
    meta_path(options.output_dir, "groundtruth", 0).unlink(missing_ok=True)
    lines = 0
    with RowLog(log_path(options.output_dir, "groundtruth", 0, 0)) as log:
        for leaf, row, part, length_us in blocks:
            for begin in range(0, len(row), _SAMPLES_OF_A_LINE):
                some = slice(begin, begin + _SAMPLES_OF_A_LINE)
                size = len(row[some])
                of_leaf = (row[some] * 0 + leaf, row[some] * 0, row[some], part[some])
                log.write(
                    BatchRow(
                        step=lines,
                        rank=0,
                        world_size=1,
                        worker_id=0,
                        cut_ids=places_of(words, *of_leaf),
                        batch_size=size,
                        t_total_ms=0.0,
                        source_ids=(names[leaf],) * size,
                        declared_duration_seconds=round(
                            float(length_us[some].clip(0).sum()) / 1e6, 6
                        ),
                        of_step=0,
                        slot=0,
                    )
                )
                lines += 1
    meta = RunMeta(
        phase="groundtruth",
        run=0,
        is_over=True,
        world_size=1,
        micro_batches_per_step=planning.micro_batches_per_step,
        num_workers=0,
        mode=options.mode,
        config_digest=config_digest(planning),
        seed=seed,
        is_finite=True,
        steps=lines,
        batches=lines,
        is_exhausted=True,
    )
    write_meta(options.output_dir, meta)
    return meta
