"""Runs Debian's Masakari for tests in one process: its API and an engine, which talk within the process."""
import masakari.cmd  # noqa: F401  It patches the standard library.

import sys

from masakari import config, objects, service
import masakari.conf
from masakari.db.sqlalchemy import api as database, models
from oslo_log import log as logging
from oslo_messaging.notify import notifier
from oslo_service import service as oslo_service
import sqlalchemy


def main():
    # Debian's oslo.messaging takes fields out of the context of notifications without which this Masakari makes none (ValueError).
    notifier._sanitize_context = lambda context: context
    conf = masakari.conf.CONF
    config.parse_args(sys.argv)
    logging.setup(conf, 'masakari')
    objects.register_all()
    engine = database.get_engine()
    with engine.connect() as connection:
        # Else a reader in one green thread keeps a writer in another from ending, and both wait for ever.
        connection.execute(sqlalchemy.text('pragma journal_mode = wal'))
    models.BASE.metadata.create_all(engine)
    launcher = oslo_service.ServiceLauncher(conf)
    launcher.launch_service(service.Service.create(binary='masakari-engine', topic=conf.masakari_topic))
    launcher.launch_service(service.WSGIService('masakari_api'))
    launcher.wait()


if __name__ == '__main__':
    main()
