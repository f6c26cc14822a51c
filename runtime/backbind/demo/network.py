"""The network of the demonstration: small, but with the usual parts (convolution, norms, embedding, attention)."""

from __future__ import annotations

import torch
from torch import nn


class DigitNetwork(nn.Module):
    """Classifies 8 x 8 images of digits.

    Args:
        width: channels of the convolution and of the attention, a multiple of 4.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, width, kernel_size=3, padding=1)
        self.batch_norm = nn.BatchNorm2d(width)
        self.positions = nn.Embedding(16, width)
        self.attention = nn.MultiheadAttention(width, num_heads=4, batch_first=True)
        self.layer_norm = nn.LayerNorm(width)
        self.classifier = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of the ten digits, ``[batch, 10]``, for images ``[batch, 1, 8, 8]``."""
        features = nn.functional.max_pool2d(torch.relu(self.batch_norm(self.convolution(images))), 2)
        tokens = features.flatten(2).transpose(1, 2) + self.positions.weight
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        scores: torch.Tensor = self.classifier(self.layer_norm(tokens + attended).mean(dim=1))
        return scores
