#!/usr/bin/env bash
# Unpacks Debian sid's llama-server with its libraries into DIR; changes nothing else. DIR may be moved afterwards.
set -euo pipefail
dir=$(realpath -m "${1:?folder}"); work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs} "$dir"; : > "$work/status"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 -E '/debian/?$')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$work/sources.list"
apt_options=(-o Dir::State="$work" -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status"
  -o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Acquire::Languages=none -o APT::Sandbox::User=root)
apt-get -qq "${apt_options[@]}" update
packages=$(apt-get "${apt_options[@]}" install --print-uris -qq --no-install-recommends llama.cpp-tools | awk '{print $2}' | sed 's/_.*//' |
  grep -E '^(llama|lib|zlib1g|gcc-[0-9]+-base)' | grep -vE -- '-(perl|bin|common|data|modules)$')
(cd "$work/debs" && apt-get -qq "${apt_options[@]}" download $packages)
for deb in "$work"/debs/*.deb; do dpkg-deb --extract "$deb" "$dir"; done
cd "$dir"
loader=$(find usr/lib -name 'ld-linux*.so.*' -not -type d | head -1)
libraries=$(find usr/lib -name '*.so*' -printf '$here/%h\n' | sort -u | paste -sd:)
# ggml looks for its backends beside the running executable, which here is the loader.
for backend in "$(dirname "$loader")"/ggml/*/libggml-*.so; do ln -sfr "$backend" "$(dirname "$loader")/"; done
cat > llama-server <<SH
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
exec env GGML_NO_BACKTRACE=1 "\$here/$loader" --library-path "$libraries" "\$here/usr/bin/llama-server" "\$@"
SH
chmod +x llama-server; ./llama-server --version
