"""Classifies texts with TF Serving over REST. Needs only Python.

    python examples/serving/client_rest.py "you won a prize" "lunch at noon?"

prints one JSON object per text, with the text and the outputs of the model. Takes a second.
"""

import argparse
import json
import sys
import urllib.error
import urllib.request


def classify(texts, server, model, timeout):
    """Returns a dict of outputs for each text. TF Serving omits the name of a single output."""
    request = urllib.request.Request(
        f"{server}/v1/models/{model}:predict",
        data=json.dumps({"signature_name": "serving_default", "instances": texts}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=timeout) as response:
        predictions = json.load(response)["predictions"]
    return [p if isinstance(p, dict) else {"values": p} for p in predictions]


def main():
    arguments = _arguments()
    server = arguments.server.rstrip("/")
    try:
        rows = classify(arguments.texts, server, arguments.model, arguments.timeout)
    except urllib.error.HTTPError as error:
        return f"{server} refused the request: {_message(error)}"
    except OSError as error:  # Connection refused, unknown host, timeout or connection lost.
        return f"cannot reach {server}: {getattr(error, 'reason', error)}"
    except (KeyError, ValueError) as error:
        return f"{server} is not TF Serving, or --server is not a URL: {error}"
    for text, outputs in zip(arguments.texts, rows, strict=True):
        print(json.dumps({"text": text, **outputs}, ensure_ascii=False))
    return None


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="a text to classify")
    parser.add_argument("--server", default="http://localhost:8501", help="default: %(default)s")
    parser.add_argument("--model", default="spam", help="name of the model; default: %(default)s")
    parser.add_argument("--timeout", type=float, default=10, help="seconds; default: %(default)s")
    return parser.parse_args()


def _message(error):
    """Returns the message in the body of an error response, in one line."""
    body = error.read()
    try:
        message = str(json.loads(body)["error"])
    except (KeyError, TypeError, ValueError):
        message = error.reason
    return f"HTTP {error.code}, {' '.join(message.split())}"


if __name__ == "__main__":
    sys.exit(main())
