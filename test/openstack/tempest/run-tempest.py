"""Runs tests of Debian's Tempest in one process. Arguments: the modules. Prints one JSON object a line for each test that has ended."""
import json
import sys
import time
import unittest


class Reporter(unittest.TestResult):
    def startTest(self, test):
        self.began = time.time()

    def report(self, test, kind, text=""):
        seconds = round(time.time() - getattr(self, "began", time.time()), 1)
        line = {"test": test.id().split("[")[0], "kind": kind, "text": text[-4000:], "seconds": seconds}
        print(json.dumps(line), file=answers, flush=True)

    def addSuccess(self, test):
        self.report(test, "passed")

    def addSkip(self, test, reason=None, details=None):
        self.report(test, "skipped", str(reason or (details and details["reason"].as_text())))

    def addFailure(self, test, err=None, details=None):
        self.report(test, "failed", text_of(err, details))

    addError = addFailure

    def addExpectedFailure(self, test, err=None, details=None):
        self.report(test, "passed")

    def addUnexpectedSuccess(self, test, details=None):
        self.report(test, "failed", "succeeded although its author expects a failure")


def text_of(err, details):
    if details:
        return "".join(part.as_text() for name, part in details.items() if name.startswith("traceback"))
    return str(err and err[1])


answers = sys.stdout
sys.stdout = sys.stderr
suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
suite.run(Reporter())
