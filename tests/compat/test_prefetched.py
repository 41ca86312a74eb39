import tensorflow as tf

from keras_xlnet.compat.prefetched import prefetched


def test_same_elements_without_autotuning():
    dataset = tf.data.Dataset.range(10).map(lambda x: x * x, tf.data.AUTOTUNE).batch(3)
    found = prefetched(dataset)
    assert [batch.tolist() for batch in found.as_numpy_iterator()] == [
        batch.tolist() for batch in dataset.as_numpy_iterator()
    ]
    assert found.options().autotune.enabled is False


def test_other_options_are_kept():
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    found = prefetched(tf.data.Dataset.range(10).with_options(options))
    assert found.options().experimental_distribute.auto_shard_policy == policy
