#!/bin/sh
# Puts the files of the image below the folder $1: the gateway in app/, its npm packages in packages/, a bill of materials beside the
# gateway. Runs in a checkout after `npm ci` and `npm run build`. The playground stays out.
set -eu
out=$1
cd "$(dirname "$0")/../.."
mkdir -p "$out/app/dist" "$out/app/deploy/envoy" "$out/packages"
cp -R dist/src "$out/app/dist/"
cp -R package.json LICENSE protos "$out/app/"
# With which `doctor` compares those of an Envoy.
cp deploy/envoy/*.lua "$out/app/deploy/envoy/"
cp package.json package-lock.json "$out/packages/"
cd "$out/packages"
npm ci --omit=dev --ignore-scripts --no-audit --no-fund
npm sbom --package-lock-only --omit=dev --sbom-format=cyclonedx >../app/sbom.cdx.json
rm package.json package-lock.json
