"""The settings of Debian's Horizon in tests. The machine's own settings and its secret key are not read."""
import os
import sys
import types

# Takes the place of /etc/openstack-dashboard/local_settings.py, whose secret key only Apache's user may read.
_local = types.ModuleType('local.local_settings')
_local.SECRET_KEY = os.environ['HORIZON_SECRET_KEY']
sys.modules['local.local_settings'] = _local

from openstack_dashboard.settings import *  # noqa: E402,F401,F403

ALLOWED_HOSTS = ['127.0.0.1']
OPENSTACK_KEYSTONE_URL = os.environ['HORIZON_KEYSTONE_URL']
SESSION_ENGINE = 'django.contrib.sessions.backends.signed_cookies'
CACHES = {'default': {'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}
OPENSTACK_API_VERSIONS = {'identity': 3, 'image': 2, 'volume': 3}
LAUNCH_INSTANCE_DEFAULTS = {'create_volume': False, 'hide_create_volume': True, 'config_drive': False}
# Debian's package has compressed the scripts and styles when it was installed.
COMPRESS_OFFLINE = True
LOGGING = {
    'version': 1,
    'disable_existing_loggers': False,
    'handlers': {'console': {'class': 'logging.StreamHandler'}},
    'root': {'handlers': ['console'], 'level': 'WARNING'},
}
