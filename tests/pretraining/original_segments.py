"""A slow twin of the original's _split_a_and_b, and one draw of it from given random numbers."""


class Draws:
    """The part of Python's `random` that the twin uses, from three given uniform numbers."""

    def __init__(self, coin, cut, place):
        self.coin, self.cut, self.place = coin, cut, place

    def random(self):
        return self.coin

    def choice(self, options):
        return options[int(self.cut * len(options))]

    def randint(self, low, high):
        return low + int(self.place * (high - low + 1))


def split_segments(sentence_ids, begin, total_length, rng, reserved):
    """Token for token as the original does it.

    `sentence_ids` are equal inside a sentence and differ at its borders. `reserved` tokens at the
    end are never part of a random B: 1 in the original.

    Returns `(a_begin, a_end, b_begin, b_end, follows)`.
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
