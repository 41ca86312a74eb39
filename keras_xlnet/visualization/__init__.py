"""Pictures of masks and attention. Needs matplotlib: `pip install ".[examples]"`."""

from keras_xlnet.lazy_modules import requires_extra

with requires_extra("examples", f"`{__name__}`"):
    from keras_xlnet.visualization.attention_maps import plot_attention, plot_attention_terms
    from keras_xlnet.visualization.attention_page import write_attention_page
    from keras_xlnet.visualization.attention_summaries import (
        attended_distances,
        memory_use,
        plot_attended_distances,
        plot_memory_use,
    )
    from keras_xlnet.visualization.permutation_masks import plot_permutation_mask

__all__ = [
    "attended_distances",
    "memory_use",
    "plot_attended_distances",
    "plot_attention",
    "plot_attention_terms",
    "plot_memory_use",
    "plot_permutation_mask",
    "write_attention_page",
]
