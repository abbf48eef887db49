-- Sweeps walk the index of open tasks itself: only so are entries of tasks that ended since marked as dead, for the next sweep to skip and
-- the next task to overwrite. A bitmap of them leaves that to vacuum.
alter function cell_sweep(uuid, double precision, int, uuid[]) set enable_bitmapscan = off;
