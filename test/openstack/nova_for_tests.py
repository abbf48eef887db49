"""Runs Debian's Nova for tests: its API in this process, and its other services in processes that end with it.

Arguments: the configuration file, and the names of the hosts, each of which gets a nova-compute.
"""
import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent():
    ctypes.CDLL('libc.so.6').prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def start(binary, host=None):
    log = os.path.join(directory, '-'.join((binary, host or 'all')) + '.log')
    command = ['/usr/bin/' + binary, '--config-file', config, '--log-file', log]
    if host is not None:
        # A host has a name and files of its own, and the rest is the same for all.
        state = os.path.join(directory, host)
        os.makedirs(os.path.join(state, 'instances'))
        with open(state + '.conf', 'w') as file:
            file.write('[DEFAULT]\nhost = %s\nstate_path = %s\n' % (host, state))
        command += ['--config-file', state + '.conf']
    return subprocess.Popen(command, preexec_fn=end_with_parent, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


config, *hosts = sys.argv[1:]
directory = os.path.dirname(config)
children = [start('nova-conductor'), start('nova-scheduler')]
children += [start('nova-compute', host) for host in hosts]
children.append(start('nova-api'))


def stop(_number, _frame):
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(8)
        except subprocess.TimeoutExpired:
            child.kill()
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
# The API is the one whose end ends all.
children[-1].wait()
stop(None, None)
