"""Memory foretold: steps on tensors that have shapes and no bytes."""
