"""The one exception by which the build reports a mistake that the reader can mend."""


class BuildError(Exception):
    """Says what is wrong, where, and what to do. Shown without a traceback."""
