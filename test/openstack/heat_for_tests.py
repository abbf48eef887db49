"""Runs Debian's Heat for tests in one process: its API and an engine, which talk within the process."""
import eventlet
eventlet.monkey_patch()
import __original_module_threading as original_threading  # noqa: E402
import threading  # noqa: E402
original_threading.current_thread.__globals__['_active'] = threading._active

import sys  # noqa: E402

from heat.cmd import api  # noqa: E402
from heat.common import config, messaging  # noqa: E402
from heat.db.sqlalchemy import api as database  # noqa: E402
from heat.engine import service as engine  # noqa: E402
from heat.rpc import api as rpc_api  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_log import log as logging  # noqa: E402
from oslo_service import service  # noqa: E402


def main():
    conf = cfg.CONF
    logging.register_options(conf)
    conf(sys.argv[1:], project='heat', prog='heat-all')
    logging.setup(conf, 'heat-all')
    config.set_config_defaults()
    messaging.setup()
    database.db_sync(database.get_engine())
    launcher = service.ServiceLauncher(conf)
    launcher.launch_service(engine.EngineService(conf.host, rpc_api.ENGINE_TOPIC))
    api.launch_api(setup_logging=False)
    launcher.wait()


if __name__ == '__main__':
    main()
