"""Requests that cannot be answered."""


class RequestError(Exception):
    """An error of a client.

    Args:
        message: String, one line, which the client receives.
        status: Int, the HTTP status.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        line = " ".join(message.split())
        super().__init__("".join(c if c.isprintable() else "\ufffd" for c in line))
        self.status = status
