import keras

_BLOCK = r"(?:.*/)?block_\d+"


def layout_map(
    mesh: keras.distribution.DeviceMesh, batch_axis: str = "batch", model_axis: str = "model"
) -> keras.distribution.LayoutMap:
    """Returns a layout map that splits the large weights of a model over devices (JAX backend).

    Split over `model_axis`, whose size must divide the dimension named here:

    - the token embedding, over `hidden_dim`, and each table of an adaptive one, over its columns;
    - the attention kernels (query, key, value, position, output), the attention biases and the
      segment embeddings, over `num_heads`;
    - the first kernel and bias and the second kernel of the feed-forward networks, over
      `intermediate_dim`.

    The states of a stateful memory are split over `batch_axis`, by rows of the batch. All other
    weights are copied to each device: layer normalization, the second bias of the feed-forward
    networks, the mask embedding, the bias of the language model's logits, projections, biases and
    clusters of an adaptive softmax, attention pooling, LoRA and the heads of task models.

    Args:
        mesh: A `keras.distribution.DeviceMesh` with both axes.
        batch_axis: String, the axis of `mesh` over which batches are split.
        model_axis: String, the axis of `mesh` over which weights are split.

    Returns:
        A `keras.distribution.LayoutMap` for `keras.distribution.ModelParallel`. Call
        `keras.distribution.set_distribution` before the model is created.

    Raises:
        ValueError: If `mesh` has no axis with one of these names.

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
                f"`{name}` must be an axis of `mesh`. Received: {name}={axis!r}, "
                f"mesh.axis_names={list(mesh.axis_names)}"
            )
    layouts = keras.distribution.LayoutMap(mesh)
    for pattern, axes in {
        r"(?:.*/)?token_embedding/(?:embeddings|table_\d+)": (None, model_axis),
        rf"{_BLOCK}/attention/(?:query|key|value|position)/kernel": (None, model_axis, None),
        rf"{_BLOCK}/attention/output/kernel": (model_axis, None, None),
        rf"{_BLOCK}/attention/segment_embeddings": (None, model_axis, None),
        rf"{_BLOCK}/attention/(?:content|position|segment)_bias": (model_axis, None),
        r"(?:.*/)?attention_biases/(?:content|position|segment)_bias": (model_axis, None),
        rf"{_BLOCK}/feed_forward/intermediate/kernel": (None, model_axis),
        rf"{_BLOCK}/feed_forward/intermediate/bias": (model_axis,),
        rf"{_BLOCK}/feed_forward/output/kernel": (model_axis, None),
        r"(?:.*/)?memory_\d+/(?:training|evaluation)_state": (batch_axis, None, None),
        r"(?:.*/)?memory_(?:mask|segment_ids)/(?:training|evaluation)_state": (batch_axis, None),
    }.items():
        layouts[pattern] = axes
    return layouts
