"""Closes connections whose requests do not come in time."""

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol


def protocol_with_timeout(timeout: float) -> type[asyncio.Protocol]:
    """Returns the class `http` of `uvicorn.run` that closes a connection without a request.

    uvicorn closes a connection that is idle after a request. This class also closes one whose
    headers, of the first request or of a later one, are not complete in time.

    Args:
        timeout: Float, seconds from the connection, or from the first byte of a later request, to
            the end of the headers.
    """

    # uvicorn chooses the class by what is installed, so that it is a variable.
    class HTTPProtocol(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
        _headers_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport):
            super().connection_made(transport)
            self._watch()

        def data_received(self, data):
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc):
            self._stop_watching()
            super().connection_lost(exc)

        def _watch(self):
            is_answering = self.cycle is not None and not self.cycle.response_complete
            if is_answering:
                self._stop_watching()
            elif self._headers_timer is None:
                self._headers_timer = self.loop.call_later(timeout, self.transport.close)

        def _stop_watching(self):
            if self._headers_timer is not None:
                self._headers_timer.cancel()
                self._headers_timer = None

    return HTTPProtocol
