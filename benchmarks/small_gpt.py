"""A GPT by nanoGPT's published recipe for CPUs, to compare examples/language_model.py with.

    python benchmarks/small_gpt.py        # needs PyTorch; about 2 minutes on 2 cores

4 layers, 4 heads, width 128, segments of 64 characters, 2,000 steps of 12 segments, AdamW, on the
characters of tiny Shakespeare; the last 10 % are held out. Written here with the layers of PyTorch,
after the hyperparameters in the README of karpathy/nanoGPT. Prints the held-out loss, the number
of weights and the time.
"""

import lzma
import math
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

TEXT = pathlib.Path(__file__).parents[1] / "examples" / "data" / "tiny_shakespeare.txt.xz"
LAYERS, HEADS, WIDTH, LENGTH = 4, 4, 128, 64
STEPS, BATCH, WARMUP = 2000, 12, 100
RATE, LAST_RATE = 1e-3, 1e-4


class Block(nn.Module):
    """Causal attention and a feed-forward network, each normalized before."""

    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH, bias=False)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.feed_forward_norm = nn.LayerNorm(WIDTH, bias=False)
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH, bias=False),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH, bias=False),
        )

    def forward(self, x):
        heads = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, HEADS, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.feed_forward_norm(x))


class GPT(nn.Module):
    """A causal language model with learned absolute positions."""

    def __init__(self, vocabulary_size):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary_size, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.logits = nn.Linear(WIDTH, vocabulary_size, bias=False)
        self.logits.weight = self.tokens.weight
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                into_sum = name.endswith(("output.weight", "feed_forward.2.weight"))
                nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * LAYERS) if into_sum else 1))

    def forward(self, token_ids, labels):
        x = self.tokens(token_ids) + self.positions.weight[: token_ids.shape[1]]
        logits = self.logits(self.norm(self.blocks(x)))
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def main():
    torch.manual_seed(0)
    text = lzma.open(TEXT, "rt", encoding="utf-8").read()
    characters = {character: i for i, character in enumerate(sorted(set(text)))}
    token_ids = torch.tensor([characters[character] for character in text])
    end = len(text) - round(0.1 * len(text))
    train, held_out = token_ids[:end], token_ids[end:]
    model = GPT(len(characters))
    decayed = [weight for weight in model.parameters() if weight.ndim == 2]
    others = [weight for weight in model.parameters() if weight.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99))
    start, cpu = time.perf_counter(), time.process_time()
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        loss = model(*batch(train, torch.randint(len(train) - LENGTH, (BATCH,))))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    minutes = [
        (now - then) / 60
        for now, then in ((time.perf_counter(), start), (time.process_time(), cpu))
    ]
    count = sum(weight.numel() for weight in model.parameters())
    print(
        f"GPT: {evaluate(model, held_out):.3f} nats a held-out character, {count:,} weights "
        f"({count - model.positions.weight.numel():,} without positions), "
        f"{minutes[0]:.1f} minutes, {minutes[1]:.1f} CPU minutes"
    )


def learning_rate(step):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    progress = (step - WARMUP) / (STEPS - WARMUP)
    return LAST_RATE + (RATE - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * progress))


def batch(token_ids, starts):
    rows = torch.stack([token_ids[start : start + LENGTH + 1] for start in starts])
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def evaluate(model, token_ids):
    """Returns the mean loss over all full segments of a text."""
    starts = torch.arange(0, len(token_ids) - LENGTH, LENGTH)
    return np.mean([model(*batch(token_ids, part)).item() for part in starts.split(100)])


if __name__ == "__main__":
    main()
