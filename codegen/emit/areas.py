"""Sorts operators into areas, for people who read the reference."""

from __future__ import annotations

import re

AREAS: tuple[tuple[str, str, str], ...] = (
    ("foreach", "Lists of tensors", r"_foreach_"),
    (
        "linear-algebra",
        "Linear algebra",
        r"_?linalg_|.*(mm|mv|dot|cholesky|lu_|qr|svd|eig|triangular|householder)",
    ),
    ("fourier", "Fourier transforms", r"_?fft|.*stft"),
    ("convolution", "Convolution", r".*conv|.*im2col|col2im"),
    ("attention", "Attention", r".*attention|.*_mha|.*transformer"),
    ("recurrent", "Recurrent cells", r".*(rnn|lstm|gru)"),
    (
        "normalization",
        "Normalization and dropout",
        r".*(batch_norm|layer_norm|group_norm|rms_norm|dropout|weight_norm)",
    ),
    ("pooling", "Pooling and resampling", r".*(pool|upsample|grid_sampler|pixel|affine_grid)"),
    ("loss", "Losses", r".*(_loss|entropy|kl_div|smooth_l1)"),
    (
        "activation",
        "Activations",
        r".*(relu|elu|gelu|silu|mish|sigmoid|tanh|softmax|softplus|softshrink|hard|glu|threshold)",
    ),
    ("embedding", "Embeddings", r".*embedding"),
    ("sparse", "Sparse tensors", r".*(sparse|coalesce)|_?values|_?indices"),
    ("nested", "Nested tensors", r".*nested|.*jagged"),
    (
        "random",
        "Random numbers",
        r".*(bernoulli|normal|exponential|cauchy|uniform|geometric|random|multinomial|poisson|dirichlet|gamma$)",
    ),
    ("special-functions", "Special functions", r"special_|.*(erf|gamma|bessel|zeta|i0|i1)"),
    (
        "shapes",
        "Shapes and views",
        r"_?(view|reshape|expand|permute|transpose|squeeze|unsqueeze|slice|select|split|chunk|unbind|narrow|as_strided|"
        r"unfold|diagonal|flip|roll|rot90|alias|cat|stack|repeat|unsafe_|pad|constant_pad|reflection|replication|"
        r"movedim|t$|t\.|block_diag|detach|lift|swap)",
    ),
    (
        "indexing",
        "Indexing and selection",
        r".*(index|gather|scatter|take|put|masked|where|sort|topk|kthvalue|mode|median)",
    ),
    (
        "reductions",
        "Reductions and scans",
        r"(sum|mean|prod|std|var|norm|max|min|amax|amin|aminmax|logsumexp|cum|nan|all|any|logcumsumexp|dist|trace|renorm)",
    ),
    ("quantization", "Quantization", r".*quant"),
)
"""Name of the page, title, pattern over the forward operator; the first that matches is taken."""

REMAINDER = ("elementwise", "Elementwise and other operators")


def area_of(operator: str) -> str:
    """The page on which an operator stands.

    >>> area_of("_foreach_add.List"), area_of("mul.Tensor")
    ('foreach', 'elementwise')
    """
    for page, _, pattern in AREAS:
        if re.match(pattern, operator):
            return page
    return REMAINDER[0]


def areas() -> tuple[tuple[str, str], ...]:
    """Page and title of every area, in the order of the reference."""
    return (*((page, title) for page, title, _ in AREAS), REMAINDER)
