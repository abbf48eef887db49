"""Serves Debian's Horizon and its static files on the port of 127.0.0.1 that the first argument names."""
import mimetypes
import os
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ['DJANGO_SETTINGS_MODULE'] = 'horizon_settings'

from django.conf import settings  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402

horizon = get_wsgi_application()
static_root = os.path.realpath(settings.STATIC_ROOT)


def answer(environ, start_response):
    path = environ['PATH_INFO']
    if not path.startswith(settings.STATIC_URL):
        return horizon(environ, start_response)
    file = os.path.realpath(os.path.join(static_root, path[len(settings.STATIC_URL):]))
    if not file.startswith(static_root + os.sep) or not os.path.isfile(file):
        start_response('404 Not Found', [])
        return [b'']
    kind = mimetypes.guess_type(file)[0] or 'application/octet-stream'
    start_response('200 OK', [('content-type', kind)])
    with open(file, 'rb') as content:
        return [content.read()]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, *_args):
        """Requests are not logged."""


make_server('127.0.0.1', int(sys.argv[1]), answer, Server, Handler).serve_forever()
