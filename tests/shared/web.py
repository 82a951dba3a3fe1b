"""A web server on this machine."""

import functools
import http.server
import threading
from contextlib import contextmanager


@contextmanager
def serve(folder):
    """Serves a folder, without a line for each request, and gives the address."""
    quiet = type('Quiet', (http.server.SimpleHTTPRequestHandler,), {'log_message': lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
