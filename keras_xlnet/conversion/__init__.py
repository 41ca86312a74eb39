"""The numerics of converting BERT encoders to XLNets: arrays in, arrays out, no files."""
