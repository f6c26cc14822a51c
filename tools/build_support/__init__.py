"""How the extension is compiled: what to compile, with which flags, and running ninja on it."""
