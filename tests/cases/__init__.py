"""Programs from public bug reports, and more of their kinds, that must not notice whether their backwards are captured.

Eager is the reference. Each case runs in a process of its own, and what it gives must be the same to the bit.
"""
