"""What a config will train on, out of its plan: no audio is read."""
