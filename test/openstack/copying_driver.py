"""Cinder's NFS driver with snapshots that are copies of a volume's file, also of a volume in use, as drivers of other storages make them by themselves."""
import os
import subprocess

from cinder import exception
from cinder.volume.drivers import nfs


class CopyingDriver(nfs.NfsDriver):
    def create_snapshot(self, snapshot):
        # Tests give a volume this name whose snapshots are to end in error.
        if snapshot.volume.display_name == 'no snapshots':
            raise exception.VolumeDriverException(message='no snapshots are made of this volume')
        self._copy(self.local_path(snapshot.volume), self._copied(snapshot))

    def delete_snapshot(self, snapshot):
        if os.path.exists(self._copied(snapshot)):
            os.remove(self._copied(snapshot))

    def create_volume_from_snapshot(self, volume, snapshot):
        made = self.create_volume(volume)
        self._copy(self._copied(snapshot), self.local_path(volume))
        return made

    def _copied(self, snapshot):
        return self.local_path(snapshot.volume) + '.copied-' + snapshot.id

    def _copy(self, source, target):
        subprocess.check_call(['cp', '--sparse=always', source, target])
