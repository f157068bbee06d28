"""A small web server in a thread whose every fault is asked for: cuts, stalls, changed files, refusals, wrong pages."""

import hashlib
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np

DATA, OTHER = (np.random.default_rng(seed).bytes(20_000) for seed in (1, 2))
SHA = hashlib.sha256(DATA).hexdigest()
Answer = Callable[["Handler"], None]


class Site(ThreadingHTTPServer):
    """The server: its answer for each path, and what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.log: list[SimpleNamespace] = []
        """Of each request its path and Range, and how many bytes of the body went out."""
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def handle_error(self, *_: object) -> None:
        """Clients here break off, which needs no traceback."""


class Handler(BaseHTTPRequestHandler):
    """Answers as the site's table says."""

    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        path = self.path.lstrip("/")
        self.request_now = SimpleNamespace(path=path, sent=0, range=self.headers["Range"])
        self.server.log.append(self.request_now)
        self.server.answers.get(path, refuse(404))(self)

    def log_message(self, *_: object) -> None:
        pass

    def head(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def body(self, content: bytes) -> None:
        self.request_now.sent += len(content)  # before: the other side may look as soon as it has the last byte
        self.wfile.write(content)


def refuse(status: int, **headers: object) -> Answer:
    return lambda h: h.head(status, Content_Length=0, **headers)


def in_turn(*answers: Answer) -> Answer:
    """The first request gets the first answer …, all after the last one get the last."""
    left = list(answers)
    return lambda h: (left.pop(0) if len(left) > 1 else left[0])(h)


def file(
    content: bytes,
    *,
    ranges: bool = True,
    length: bool = True,
    upto: int | None = None,
    stall: bool = False,
    **more: object,
) -> Answer:
    """A file; ``upto``: the connection ends (``stall``: goes quiet) before this byte of it; ``length`` False: neither length
    nor chunks, as servers of old."""

    def answer(h: Handler) -> None:
        first, status = 0, 200
        if ranges and (match := re.match(r"bytes=(\d+)-$", h.request_now.range or "")):
            first, status = int(match[1]), 206
        if first >= len(content) > 0:
            h.head(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
            return
        more_headers = {"Content_Range": f"bytes {first}-{len(content) - 1}/{len(content)}"} if status == 206 else {}
        h.head(status, Content_Length=len(content) - first if length else None, **more_headers, **more)
        h.body(content[first:upto])
        if stall:
            h.wfile.flush()
            h.server.over.wait(60)
        h.close_connection = upto is not None or not length

    return answer


def chunked(content: bytes) -> Answer:
    """A file in chunks, without its length."""

    def answer(h: Handler) -> None:
        h.head(200, Transfer_Encoding="chunked")
        h.body(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))

    return answer
