"""Which rows of a batch belong to which replica, direction and host."""

import numpy as np
import tensorflow as tf


class RowOrder:
    """The order of rows in a batch: by replica, and in each replica forward rows come first.

    A strategy splits a batch into consecutive rows for each replica, and layers with
    `bidirectional_data` treat the second half of their rows as backward rows. The parts of a shard
    are numbered over the whole batch; each is read by one row, or by one forward row and one
    backward row.

    Args:
        batch_size: Int, number of rows over all replicas and hosts.
        bidirectional_data: Bool.
        num_replicas: Int, number of replicas over all hosts.
        num_hosts: Int.
        host_index: Int, index of this host.

    Raises:
        ValueError: If the rows cannot be divided equally.
    """

    def __init__(
        self,
        batch_size: int,
        bidirectional_data: bool,
        num_replicas: int,
        num_hosts: int,
        host_index: int,
    ) -> None:
        self.num_directions = 2 if bidirectional_data else 1
        if batch_size % (num_replicas * self.num_directions):
            raise ValueError(
                f"`batch_size` must be divisible by num_replicas={num_replicas}"
                f"{' times 2 for bidirectional_data' if bidirectional_data else ''}. "
                f"Received: batch_size={batch_size}"
            )
        if num_replicas % num_hosts or host_index >= num_hosts:
            raise ValueError(
                "`num_replicas` must be divisible by `num_hosts`, and `host_index` must be less "
                f"than `num_hosts`. Received: num_replicas={num_replicas}, "
                f"num_hosts={num_hosts}, host_index={host_index}"
            )
        self.num_parts = batch_size // self.num_directions
        self.num_rows = batch_size // num_hosts
        self.rows = _slice_of_host(batch_size, num_hosts, host_index)
        self.parts = _slice_of_host(self.num_parts, num_hosts, host_index)
        self._num_replicas = num_replicas // num_hosts

    @property
    def reverse(self) -> np.ndarray:
        """Bool array `(num_rows,)`: which rows of this host are read backward."""
        rows_per_direction = self.num_rows // self._num_replicas // self.num_directions
        is_backward = np.repeat(np.arange(self.num_directions) > 0, rows_per_direction)
        return np.tile(is_backward, self._num_replicas)

    def by_direction(self, x: tf.Tensor) -> tf.Tensor:
        """Reorders `(num_rows, n)` to `(num_directions, parts of this host, n)`."""
        x = tf.reshape(x, (self._num_replicas, self.num_directions, -1, x.shape[-1]))
        x = tf.transpose(x, (1, 0, 2, 3))
        return tf.reshape(x, (self.num_directions, -1, x.shape[-1]))

    def by_row(self, x: tf.Tensor) -> tf.Tensor:
        """Reorders `(num_directions, parts of this host, n)` to `(num_rows, n)`."""
        x = tf.reshape(x, (self.num_directions, self._num_replicas, -1, x.shape[-1]))
        x = tf.transpose(x, (1, 0, 2, 3))
        return tf.reshape(x, (self.num_rows, x.shape[-1]))


def _slice_of_host(count, num_hosts, host_index):
    size = count // num_hosts
    return slice(host_index * size, (host_index + 1) * size)
