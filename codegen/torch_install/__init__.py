"""Facts of an installed torch, read from its files: operators, names, node structs, exported symbols."""
