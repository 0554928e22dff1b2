"""Where people train: a module for each framework, imported by name, none of them by another."""
