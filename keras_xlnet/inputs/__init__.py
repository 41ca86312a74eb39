"""What users pass to models, as arrays: texts, lists of token ids, labels, and their checks."""
