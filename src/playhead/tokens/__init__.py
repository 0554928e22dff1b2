"""Tokenizers, prompt formats, and how many tokens every row has."""
