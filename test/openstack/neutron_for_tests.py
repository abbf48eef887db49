"""Runs Debian's neutron-server for tests: tables in an empty database, a mechanism driver that needs no agent, and tokens that name a project."""
import sys

# It patches the standard library, which has to come before SQLAlchemy and oslo.db are loaded, also by neutron_lib; else concurrent requests share one database session.
import neutron.cmd.eventlet  # noqa: F401
from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib.plugins.ml2 import api


class Driver(api.MechanismDriver):
    """Connects ports on every host whose name does not begin with 'lonely'."""

    def initialize(self):
        pass

    def bind_port(self, context):
        if context.host.startswith('lonely'):
            return
        segment = context.segments_to_bind[0]
        context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OVS, {}, status=constants.PORT_STATUS_ACTIVE)


def connect(host, port_id):
    """
    Does what Neutron's agent on a host does when it finds the port's interface there, and returns whether it connects the port. If the port is bound to
    another host, the agent does so only if the port's server is being moved here.
    """
    from neutron.agent.rpc import migrating_to_host
    from neutron.objects import ports
    from neutron.plugins.ml2 import rpc
    from neutron_lib import context
    admin = context.get_admin_context()
    bindings = ports.PortBinding.get_objects(admin, port_id=port_id)
    active = [binding.host for binding in bindings if binding.status == constants.ACTIVE]
    if active != [host] and migrating_to_host(bindings) != host:
        return False
    rpc.RpcCallbacks(None, None).update_device_up(admin, device=port_id, host=host, agent_id='test')
    return True


def token_filter(_global_conf, **_local_conf):
    """The token is the project's id; the token 'service-token' is that of an administrator. `POST agents-of-tests/HOST/PORT` acts as the host's agent."""

    def wrap(app):
        def call(environ, start_response):
            path = environ.get('PATH_INFO', '').split('/')
            if path[1] == 'agents-of-tests':
                start_response('204 No Content' if connect(*path[2:]) else '409 Conflict', [])
                return [b'']
            token = environ.get('HTTP_X_AUTH_TOKEN', '')
            is_admin = token == 'service-token'
            environ['HTTP_X_USER_ID'] = 'user'
            environ['HTTP_X_PROJECT_ID'] = 'service' if is_admin else token
            environ['HTTP_X_ROLES'] = 'admin,member' if is_admin else 'member'
            return app(environ, start_response)
        return call
    return wrap


def main():
    url = sys.argv.pop(1)
    from neutron.db.migration.models import head  # noqa: F401
    from neutron_lib.db import model_base
    import sqlalchemy
    import sqlalchemy.orm
    engine = sqlalchemy.create_engine(url)
    if url.startswith('sqlite'):
        with engine.connect() as connection:
            # Else a reader in one green thread keeps a writer in another from ending, and both wait for ever.
            connection.execute(sqlalchemy.text('pragma journal_mode = wal'))
    model_base.BASEV2.metadata.create_all(engine)
    # Else a list of ports is refused (500) if it is the first request: it names attributes that SQLAlchemy adds with the first query.
    sqlalchemy.orm.configure_mappers()
    from neutron.cmd.eventlet.server import main as serve
    serve()


if __name__ == '__main__':
    main()
