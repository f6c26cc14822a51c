"""The demonstration: a small real network on real data, its backward taken apart at every step."""
