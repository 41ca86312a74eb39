"""Which rows of a batch belong to which replica, direction and host."""

import numpy as np
import tensorflow as tf


class RowLayout:
    """The order of rows in a batch: by replica, in each the forward rows before the backward ones.

    Strategies cut a batch into as many consecutive pieces as there are replicas, and a layer with
    `bidirectional_data` takes the second half of what it gets as the backward one. Streams are
    numbered over the whole batch; a forward row and a backward row share each of them.

    Args:
        batch_size: int, rows over all replicas and hosts.
        bidirectional_data: bool.
        num_replicas: int, over all hosts.
        num_hosts: int.
        host_index: int.

    Raises:
        ValueError: the numbers do not divide each other.
    """

    def __init__(self, batch_size, bidirectional_data, num_replicas, num_hosts, host_index):
        self.num_directions = 2 if bidirectional_data else 1
        if batch_size % (num_replicas * self.num_directions):
            raise ValueError(
                f"batch_size must be divisible by num_replicas={num_replicas}"
                f"{' times two, for bidirectional_data' if bidirectional_data else ''}. "
                f"Received: {batch_size}"
            )
        if num_replicas % num_hosts or host_index >= num_hosts:
            raise ValueError(
                "num_replicas must be divisible by num_hosts, and host_index less than num_hosts. "
                f"Received: num_replicas={num_replicas}, num_hosts={num_hosts}, "
                f"host_index={host_index}"
            )
        self.num_streams = batch_size // self.num_directions
        self.num_rows = batch_size // num_hosts
        self.rows = _share(batch_size, num_hosts, host_index)
        self.streams = _share(self.num_streams, num_hosts, host_index)
        self._num_replicas = num_replicas // num_hosts

    @property
    def reverse(self):
        """Bool array `(num_rows,)`: which rows of this host read backwards."""
        rows_of_half = self.num_rows // self._num_replicas // self.num_directions
        halves = np.repeat(np.arange(self.num_directions) > 0, rows_of_half)
        return np.tile(halves, self._num_replicas)

    def by_direction(self, x):
        """`(num_rows, n)` to `(num_directions, streams of this host, n)`."""
        x = tf.reshape(x, (self._num_replicas, self.num_directions, -1, x.shape[-1]))
        x = tf.transpose(x, (1, 0, 2, 3))
        return tf.reshape(x, (self.num_directions, -1, x.shape[-1]))

    def by_row(self, x):
        """`(num_directions, streams of this host, n)` to `(num_rows, n)`."""
        x = tf.reshape(x, (self.num_directions, self._num_replicas, -1, x.shape[-1]))
        x = tf.transpose(x, (1, 0, 2, 3))
        return tf.reshape(x, (self.num_rows, x.shape[-1]))


def _share(count, num_hosts, host_index):
    size = count // num_hosts
    return slice(host_index * size, (host_index + 1) * size)
