"""Runs Debian's Cinder for tests in one process: its API, scheduler and NFS driver, tables in sqlite, and tokens that name a project."""
import eventlet
eventlet.monkey_patch()
import __original_module_threading as original_threading  # noqa: E402
import threading  # noqa: E402
original_threading.current_thread.__globals__['_active'] = threading._active

import os  # noqa: E402
import sys  # noqa: E402

from cinder import objects  # noqa: E402
objects.register_all()


def token_filter(_global_conf, **_local_conf):
    """The token is the project's id; the token 'service-token' is that of an administrator, also beside another one."""

    def wrap(app):
        def call(environ, start_response):
            token = environ.get('HTTP_X_AUTH_TOKEN', '')
            is_admin = token == 'service-token'
            environ['HTTP_X_USER_ID'] = 'user'
            environ['HTTP_X_PROJECT_ID'] = 'service' if is_admin else token
            environ['HTTP_X_ROLES'] = 'admin,member' if is_admin else 'member'
            if environ.get('HTTP_X_SERVICE_TOKEN') == 'service-token':
                environ['HTTP_X_SERVICE_ROLES'] = 'service'
            return app(environ, start_response)
        return call
    return wrap


def main():
    # Shares are directories, and nothing needs root.
    from os_brick.remotefs import remotefs
    remotefs.RemoteFsClient.mount = lambda self, share, flags=None: os.makedirs(self.get_mount_point(share), exist_ok=True)
    from cinder import coordination, rpc, service, utils, version
    from cinder.common import config, constants
    from cinder.db import migration
    from oslo_config import cfg
    from oslo_log import log as logging
    from oslo_service import service as oslo_service
    utils.get_root_helper = lambda: 'env'
    conf = cfg.CONF
    conf(sys.argv[1:], project='cinder', version=version.version_string())
    config.set_middleware_defaults()
    logging.setup(conf, 'cinder')
    migration.db_sync()
    import sqlalchemy
    with sqlalchemy.create_engine(conf.database.connection).connect() as connection:
        # Else a reader in one green thread keeps a writer in another from ending, and both wait for ever.
        connection.execute(sqlalchemy.text('pragma journal_mode = wal'))
    rpc.init(conf)
    launcher = oslo_service.ServiceLauncher(conf)
    launcher.launch_service(service.Service.create(binary=constants.SCHEDULER_BINARY))
    conf.register_opt(cfg.StrOpt('backend_host'), group='nfs')
    launcher.launch_service(service.Service.create(
        host='%s@nfs' % conf.host, service_name='nfs', binary=constants.VOLUME_BINARY, coordination=True))
    launcher.launch_service(service.WSGIService('osapi_volume'))
    launcher.wait()


if __name__ == '__main__':
    main()
