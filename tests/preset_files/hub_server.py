"""A stand-in for the HTTP interface of the Hugging Face Hub: repositories in memory."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading

SHA = "5" * 40


class Hub(http.server.ThreadingHTTPServer):
    """Serves `files`, `{repository: {path: bytes}}`, and keeps the requests in `requests`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {}
        self.requests = []
        self.refuses = None
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.path, body))
        if self.server.refuses:
            return self._answer({"error": self.server.refuses}, status=403)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.files.setdefault(name, {})
            return self._answer({"url": f"{self.server.url}/{name}"})
        if self.path == "/api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/(.+)", self.path)
        name, action, revision = found.groups()
        if action == "preupload":
            files = json.loads(body)["files"]
            modes = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in files
            ]
            return self._answer({"files": modes})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.server.files[name][line["value"]["path"]] = content
        url = f"{self.server.url}/{name}/commit/{SHA}"
        return self._answer({"success": True, "commitOid": SHA, "commitUrl": url})

    def do_GET(self):  # noqa: N802
        self.server.requests.append((self.path, b""))
        found = re.fullmatch(r"/api/models/([^/]+/[^/?]+)(?:/revision/[^?]+)?(?:\?.*)?", self.path)
        if found and found[1] in self.server.files:
            siblings = [{"rfilename": path} for path in self.server.files[found[1]]]
            return self._answer({"id": found[1], "sha": SHA, "siblings": siblings})
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/.+", self.path)
        if found:
            files = self.server.files[found[1]].items()
            return self._answer(
                [{"type": "file", "path": p, "size": len(f), "oid": SHA} for p, f in files]
            )
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", self.path)
        content = self.server.files.get(found[1], {}).get(found[2]) if found else None
        if content is None:
            return self._answer({"error": "not found"}, status=404)
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": SHA}
        return self._answer(content, headers=headers)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, content, status=200, headers=None):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving():
    """Yields a running `Hub`."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()
