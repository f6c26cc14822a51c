"""Commands that developers and the build run: regen, build, bench."""
