"""Masks as pictures. Needs matplotlib: `pip install "xlnet-keras[examples]"`."""

from keras_xlnet.visualization.plot_permutation_mask import plot_permutation_mask

__all__ = ["plot_permutation_mask"]
