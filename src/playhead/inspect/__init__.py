"""What a checkpoint says of the data: how far every source has been read. Nothing is changed."""
