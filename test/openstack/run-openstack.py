"""Runs commands of Debian's openstack client in one process: a JSON list of words a line in, an object with code and output a line out."""
import contextlib
import io
import json
import sys

from openstackclient import shell


class Terminal(io.StringIO):
    """Without a terminal, some commands would read their standard input to upload it."""

    def isatty(self):
        return True


def run(words):
    out, errors = io.StringIO(), io.StringIO()
    sys.stdin = Terminal()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = shell.OpenStackShell().run(words)
        except SystemExit as end:
            code = end.code
    return {"code": code or 0, "out": out.getvalue(), "errors": errors.getvalue()}


commands, answers = sys.stdin, sys.stdout
for line in commands:
    print(json.dumps(run(json.loads(line))), file=answers, flush=True)
