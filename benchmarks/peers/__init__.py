"""The same work by other libraries and by ours, one file a comparison; `peers.py` runs them."""
