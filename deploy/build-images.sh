#!/usr/bin/env bash
# Builds the images that deploy/compose.yaml runs: berth:local and berth-servers:local. With --local from base images that are
# made on this machine (deploy/local-images.sh), otherwise from those of the public registry.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
args=()
# The image has the page as it is built here.
(cd "$root" && npm run --silent dashboard)
if [ "${1:-}" = "--local" ]; then
  "$root/deploy/local-images.sh"
  args=(--build-arg BASE_IMAGE=berth-base:local --build-arg MODULES_IMAGE=berth-modules:local)
fi

# The classic builder: BuildKit is not in every distribution's package.
export DOCKER_BUILDKIT=0
for target in berth servers; do
  image=berth:local
  [ "$target" = berth ] || image=berth-servers:local
  docker build --quiet "${args[@]}" --target "$target" --tag "$image" -f "$root/deploy/Dockerfile" "$root"
done
