"""Plots of attention masks. Needs matplotlib: `pip install "xlnet-keras[examples]"`."""

from keras_xlnet.visualization.permutation_masks import plot_permutation_mask

__all__ = ["plot_permutation_mask"]
