import keras

_BLOCK = r"(?:.*/)?block_\d+"


def layout_map(mesh, batch_axis="batch", model_axis="model"):
    """How to split the weights of a model of this package over devices, on the JAX backend.

    Attention is split over heads, feed-forward networks over their inner width, the token embedding
    over `hidden_dim`, so that any vocabulary will do; all three have to be multiples of the size of
    `model_axis`. A stateful memory is split over the rows of a batch. What is not named here, and
    is small (norms, heads of task models, seeds), each device has a copy of.

    Args:
        mesh: A `keras.distribution.DeviceMesh` with both axes.
        batch_axis: String, the axis of `mesh` that batches are split over.
        model_axis: String, the axis of `mesh` that weights are split over.

    Returns:
        A `keras.distribution.LayoutMap`. It is for `keras.distribution.ModelParallel`, which has to
        be set (`keras.distribution.set_distribution`) before the model is made.

    Raises:
        ValueError: If `mesh` has no axis of that name.

    Example:

    >>> mesh = keras.distribution.DeviceMesh(
    ...     shape=(1, 1), axis_names=["batch", "model"], devices=["cpu:0"])
    >>> layouts = keras_xlnet.training.layout_map(mesh)
    >>> layouts["block_0/attention/query/kernel"].axes
    (None, 'model', None)
    >>> distribution = keras.distribution.ModelParallel(
    ...     layout_map=layouts, batch_dim_name="batch")

    Source: Shoeybi et al. 2019 (Megatron-LM), section 3.
    """
    for name, axis in (("batch_axis", batch_axis), ("model_axis", model_axis)):
        if axis not in mesh.axis_names:
            raise ValueError(
                f"`mesh` has no axis {axis!r}. Received: {name}={axis!r}, "
                f"mesh.axis_names={list(mesh.axis_names)}"
            )
    layouts = keras.distribution.LayoutMap(mesh)
    for pattern, axes in {
        r"(?:.*/)?token_embedding/embeddings": (None, model_axis),
        rf"{_BLOCK}/attention/(?:query|key|value|position)/kernel": (None, model_axis, None),
        rf"{_BLOCK}/attention/output/kernel": (model_axis, None, None),
        rf"{_BLOCK}/attention/segment_embeddings": (None, model_axis, None),
        rf"{_BLOCK}/attention/(?:content|position|segment)_bias": (model_axis, None),
        r"(?:.*/)?attention_biases/(?:content|position|segment)_bias": (model_axis, None),
        rf"{_BLOCK}/feed_forward/intermediate/kernel": (None, model_axis),
        rf"{_BLOCK}/feed_forward/intermediate/bias": (model_axis,),
        rf"{_BLOCK}/feed_forward/output/kernel": (model_axis, None),
        r"(?:.*/)?memory_\d+/(?:training|evaluation)_state": (batch_axis, None, None),
        r"(?:.*/)?memory_(?:mask|segments)/(?:training|evaluation)_state": (batch_axis, None),
    }.items():
        layouts[pattern] = axes
    return layouts
