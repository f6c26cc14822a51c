"""The compiler's sanitizers that the extension can be built with."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sanitizer:
    """One kind of sanitized build.

    Attributes:
        compile: flags of the compiler.
        link: flags of the linker.
        library: the runtime, which must be loaded before anything else; Python is not linked to it.
    """

    compile: tuple[str, ...]
    link: tuple[str, ...]
    library: str


SANITIZERS = {
    # Undefined behaviour is looked for in the same build: it is as much an error of one thread as a wrong address,
    # and together they cost one build and one run less.
    "address": Sanitizer(
        compile=("-fsanitize=address", "-fsanitize=undefined", "-fno-omit-frame-pointer"),
        link=(
            "-fsanitize=address",
            "-fsanitize=undefined",
            # As a shared library, the runtime for undefined behaviour would give the name of its log to the runtime
            # for addresses, by a function that both export, and itself write to the standard error.
            "-static-libubsan",
            "-Wl,--exclude-libs,libubsan.a",
        ),
        library="libasan.so",
    ),
    "thread": Sanitizer(
        compile=(
            "-fsanitize=thread",
            "-fno-omit-frame-pointer",
            # In every file g++ would warn that ThreadSanitizer does not know a fence in a header of torch.
            "-Wno-tsan",
        ),
        link=("-fsanitize=thread",),
        library="libtsan.so",
    ),
}
