"""What models return, as Python objects: answers, entities, continuations, and their decoding."""
