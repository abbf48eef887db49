#!/bin/sh
# Fails when proto/gen differs from the present output of `npm run generate` for proto/*.proto.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
buf generate --output "$fresh"
if ! diff -r "$fresh/proto/gen" proto/gen; then
  echo "proto/gen is stale: run 'npm run generate'" >&2
  exit 1
fi
