"""From the model to text: one module for each kind of output, all of them listed in registry.py."""
