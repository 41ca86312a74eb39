"""Reference implementation of the original's `_split_a_and_b`, in plain Python."""


class Draws:
    """Replaces Python's `random.Random` by three given uniform numbers."""

    def __init__(self, coin, choice_of_cut, begin):
        self.coin, self.choice_of_cut, self.begin = coin, choice_of_cut, begin

    def random(self):
        return self.coin

    def choice(self, options):
        return options[int(self.choice_of_cut * len(options))]

    def randint(self, low, high):
        return low + int(self.begin * (high - low + 1))


def split_segments(sentence_ids, begin, total_length, rng, reserved):
    """Splits token by token, as the original does.

    Args:
        sentence_ids: Array that is constant within a sentence and changes between sentences.
        begin: Int, the first token of A.
        total_length: Int, the number of tokens of A and B together.
        rng: `random.Random` or `Draws`.
        reserved: Int, number of tokens at the end that are never part of a random B: 1 in the
            original.

    Returns:
        Tuple `(a_begin, a_end, b_begin, b_end, follows)`.
    """
    num_tokens = len(sentence_ids)
    starts = [i for i in range(begin + 1, num_tokens) if sentence_ids[i] != sentence_ids[i - 1]]
    cuts = [i for i in starts if i - begin < total_length]
    end = next((i for i in starts if i - begin >= total_length), num_tokens)
    if not cuts or rng.random() < 0.5:
        a_end = rng.choice(cuts) if cuts else end
        b_length = max(1, total_length - (a_end - begin))
        b_begin = rng.randint(0, num_tokens - reserved - b_length)
        b_end = b_begin + b_length
        while b_begin > 0 and sentence_ids[b_begin - 1] == sentence_ids[b_begin]:
            b_begin -= 1
        while b_end < num_tokens - reserved and sentence_ids[b_end - 1] == sentence_ids[b_end]:
            b_end += 1
        follows = False
    else:
        a_end = rng.choice(cuts)
        b_begin, b_end = a_end, end
        follows = True
    while a_end - begin + b_end - b_begin > total_length:
        if a_end - begin > b_end - b_begin:
            a_end -= 1
        else:
            b_end -= 1
    return begin, a_end, b_begin, b_end, follows
