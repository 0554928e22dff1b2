"""The demonstration: a training run that is killed and resumed on other ranks, and a proof."""
