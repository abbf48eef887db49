#!/usr/bin/env bash
# Makes the base images of deploy/Dockerfile without an image registry: a Debian from this machine's own apt sources, with the servers that
# a cloud needs, and this clone's node_modules without development dependencies. Needs root, debootstrap, docker and an installed clone (npm
# ci). Then run: deploy/build-images.sh --local
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
  awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }')
: "${mirror:?no apt source of $suite was found}"

if ! docker image inspect berth-base:local >/dev/null 2>&1; then
  debootstrap --variant=minbase --include=ca-certificates,nats-server,redis-server,haproxy "$suite" "$work/base" "$mirror" \
    >"$work/debootstrap.log" 2>&1 || { tail -20 "$work/debootstrap.log" >&2; exit 1; }
  rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/var/lib/apt/lists/* "$work"/base/usr/share/{doc,man,locale}
  tar -C "$work/base" -c . | docker import - berth-base:local
fi

lock=$(sha256sum <"$root/package-lock.json" | cut -c1-16)
if ! docker image inspect "berth-modules:$lock" >/dev/null 2>&1; then
  mkdir -p "$work/modules/app"
  cp -a "$root/node_modules" "$root/package.json" "$root/package-lock.json" "$work/modules/app/"
  # What commands have compiled in this clone is of no use to the user of the image.
  rm -rf "$work/modules/app/node_modules/.cache"
  (cd "$work/modules/app" && npm prune --omit=dev --ignore-scripts --offline --no-audit --no-fund >/dev/null)
  cat >"$work/modules/Dockerfile" <<'DOCKERFILE'
FROM berth-base:local
COPY app /app
DOCKERFILE
  DOCKER_BUILDKIT=0 docker build --quiet --tag "berth-modules:$lock" "$work/modules"
fi
docker tag "berth-modules:$lock" berth-modules:local
