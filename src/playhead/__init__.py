"""Playhead: a training data loader for speech that resumes exactly, on any number of GPUs."""
