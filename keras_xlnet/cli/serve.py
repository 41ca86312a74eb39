"""`xlnet serve`: answers requests to the SavedModels of a directory."""

import argparse
import logging

from keras_xlnet.lazy_modules import requires_extra


def run(arguments: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit status."""
    with requires_extra("serve", "`xlnet serve`"):
        import uvicorn

        from keras_xlnet.server import ModelStore, create_app
        from keras_xlnet.server.slow_connections import protocol_with_timeout
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    store = ModelStore(arguments.directory)
    store.refresh()
    if not store.names:
        failures = "".join(
            f". {name} version {number}: {message}"
            for (name, number), message in store.failures.items()
        )
        raise ValueError(
            f"{arguments.directory} must hold SavedModels at NAME/VERSION, such as spam/1{failures}"
        )
    app = create_app(
        store,
        batch_delay=arguments.batch_delay_ms / 1000,
        max_batch_rows=arguments.max_batch_rows,
        num_threads=arguments.num_threads,
        max_rows=arguments.max_rows,
        max_body_bytes=arguments.max_body_bytes,
        timeout=arguments.timeout,
        poll_interval=arguments.poll_interval,
    )
    print(f"{', '.join(store.names)} at http://{arguments.host}:{arguments.port}", flush=True)
    uvicorn.run(
        app,
        host=arguments.host,
        port=arguments.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=protocol_with_timeout(arguments.timeout),
        timeout_graceful_shutdown=int(arguments.timeout) + 1,
    )
    return 0
