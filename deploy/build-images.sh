#!/usr/bin/env bash
# Builds the images of deploy/compose.yaml: berth:local and berth-servers:local. With --local the base images are those that
# deploy/local-images.sh made on this machine, otherwise those of the public registry.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
args=()
# The dashboard's page is built here, and the image copies it.
(cd "$root" && npm run --silent dashboard)
if [ "${1:-}" = "--local" ]; then
  "$root/deploy/local-images.sh"
  args=(--build-arg BASE_IMAGE=berth-base:local --build-arg MODULES_IMAGE=berth-modules:local)
fi

# Uses the classic builder, because not every distribution's package has BuildKit.
export DOCKER_BUILDKIT=0
for target in berth servers; do
  image=berth:local
  [ "$target" = berth ] || image=berth-servers:local
  docker build --quiet "${args[@]}" --target "$target" --tag "$image" -f "$root/deploy/Dockerfile" "$root"
done
