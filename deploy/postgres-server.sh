#!/bin/bash
# A Postgres server in a container. At its first start it creates a cluster with the role and the database `berth` and the password in
# POSTGRES_PASSWORD. The role owns the database and may replicate, because schedulers follow the ledger by replication. It has no other
# rights.
set -euo pipefail
bin=/opt/postgres/bin
dir=/data/cluster

if [ ! -f "$dir/PG_VERSION" ]; then
  rm -rf "$dir.new"
  "$bin/initdb" -D "$dir.new" -U postgres --auth=scram-sha-256 --pwfile=<(echo "$POSTGRES_PASSWORD") \
    --encoding=UTF8 --locale=C.UTF-8 --no-sync >/dev/null
  cat >"$dir.new/pg_hba.conf" <<'HBA'
host all,replication berth all scram-sha-256
HBA
  {
    echo "create role berth login replication password '$POSTGRES_PASSWORD';"
    echo "create database berth owner berth;"
  } | "$bin/postgres" --single -D "$dir.new" postgres >/dev/null
  sync -f "$dir.new"
  mv "$dir.new" "$dir"
fi

unset POSTGRES_PASSWORD
exec "$bin/postgres" -D "$dir" \
  -c listen_addresses='*' -c unix_socket_directories=/tmp \
  -c wal_level=logical -c max_wal_senders=64 -c max_replication_slots=64 -c max_slot_wal_keep_size=10GB -c max_connections=200 \
  -c shared_buffers=96MB -c max_wal_size=1GB -c jit=off -c max_parallel_workers_per_gather=0 \
  -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c wal_sender_timeout=20s
