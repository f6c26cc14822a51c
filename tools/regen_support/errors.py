"""The one exception that ends a run: its message goes to the user as it is."""


class BadInputError(Exception):
    """Something that the run was given cannot be used; exit code 2."""
