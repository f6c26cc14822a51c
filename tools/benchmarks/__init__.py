"""One module for each benchmark; tools/bench.py lists and runs them."""
