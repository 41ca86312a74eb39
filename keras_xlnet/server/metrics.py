"""Numbers for Prometheus."""

import prometheus_client


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        self.requests = prometheus_client.Counter(
            "xlnet_requests",
            "Requests for predictions, by model and HTTP status",
            ["model", "status"],
            registry=self.registry,
        )
        self.seconds = prometheus_client.Histogram(
            "xlnet_request_seconds",
            "Time from the headers of a request to its answer",
            ["model"],
            registry=self.registry,
        )
        self.batch_rows = prometheus_client.Histogram(
            "xlnet_batch_rows",
            "Rows that a model read together",
            ["model"],
            buckets=[2**i for i in range(11)],
            registry=self.registry,
        )
        self.version = prometheus_client.Gauge(
            "xlnet_model_version",
            "The version of a model that is served",
            ["model"],
            registry=self.registry,
        )
        self.failed_versions = prometheus_client.Gauge(
            "xlnet_failed_versions",
            "Versions that cannot be loaded",
            registry=self.registry,
        )

    def text(self) -> bytes:
        """Returns the text format that Prometheus reads."""
        return prometheus_client.generate_latest(self.registry)
