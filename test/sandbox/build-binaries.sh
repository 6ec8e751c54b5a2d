#!/usr/bin/env bash
# Builds the Kubernetes binaries of the sandbox from Go modules into the user's cache, once per version.
# Usage: build-binaries.sh            build what is missing and print the folder
#        build-binaries.sh --path     print the folder and build nothing
#        build-binaries.sh --plan     print what is missing, as progress.sh plans it, and build nothing
#        build-binaries.sh --helm     the same for helm alone
#        build-binaries.sh --oldest   the same for the kube-apiserver of the oldest supported version, alone in its folder
# A binary in KUBEBUILDER_ASSETS with the same minor version is used instead; another minor version is an error.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${SKYHOOKD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyhookd}
. "$here/progress.sh"
say() { unpaint; echo "sandbox: $*" >&2; }
die() { say "$*"; exit 1; }

module_version() { sed -n "s#^require $2 \(v[^ ]*\).*#\1#p; s#^[[:space:]]*$2 \(v[^ ]*\).*#\1#p" "$here/modules/$1/go.mod" | head -n 1; }
kubernetes_version=$(module_version kubernetes k8s.io/kubernetes)
etcd_version=$(module_version etcd go.etcd.io/etcd/server/v3)
helm_version=$(module_version helm helm.sh/helm/v4)
bin=$CACHE/bin/kubernetes-$kubernetes_version+etcd-$etcd_version+helm-$helm_version
if [[ ${1:-} == --path ]]; then echo "$bin" && exit; fi
if [[ ${1:-} == --oldest ]]; then
  kubernetes_version=$(module_version kubernetes-oldest k8s.io/kubernetes)
  bin=$CACHE/bin/kube-apiserver-$kubernetes_version
  unset KUBEBUILDER_ASSETS
fi

# minor_of v1.36.3 -> 1.36
minor_of() { sed -E 's/^v?([0-9]+\.[0-9]+).*/\1/' <<<"$1"; }

reuse() { # reuse NAME: true when KUBEBUILDER_ASSETS has it; another minor version is always an error
  local candidate=${KUBEBUILDER_ASSETS:-}/$1 found=$kubernetes_version
  [[ -n ${KUBEBUILDER_ASSETS:-} && -x $candidate ]] || return 1
  case $1 in
    etcd | helm) ;; # they have their own versions, and the sandbox uses only what has not changed for years
    kubectl) found=$("$candidate" version --client 2>/dev/null | sed -n 's/^Client Version: //p') ;;
    *) found=$("$candidate" --version | sed 's/^Kubernetes //') ;;
  esac
  [[ $(minor_of "$found") == "$(minor_of "$kubernetes_version")" ]] ||
    die "KUBEBUILDER_ASSETS holds $1 $found, the sandbox needs $(minor_of "$kubernetes_version"): point it at a matching folder or unset it"
  [[ -x $bin/$1 ]] || ln -sf "$candidate" "$bin/$1"
}

compile() { # compile NAME MODULE PACKAGE LDFLAGS
  local name=$1 module=$2 package=$3 flags=$4
  (cd "$here/modules/$module" && CGO_ENABLED=0 "$here/../../build/toolchain.sh" go build -buildvcs=false -trimpath -ldflags "-s -w $flags" -o "$bin/$name.partial" "$package") ||
    die "go could not build $name from its modules (see above). Set KUBEBUILDER_ASSETS=FOLDER to use finished programs instead."
  mv "$bin/$name.partial" "$bin/$name"
}
build() { # build NAME MODULE PACKAGE LDFLAGS
  if [[ -x $bin/$1 ]]; then part_ended "$1"; else part "$1" compile "$@"; fi
}

# Seconds on two processors, in this order, with an empty cache of Go.
plan() {
  local name seconds
  while read -r name seconds; do
    [[ $# -eq 0 || $1 == "$name" ]] || continue
    reuse "$name" || [[ -x $bin/$name ]] || echo "main $seconds $name"
  done <<<"helm 134
kube-apiserver 299
kube-controller-manager 62
kube-scheduler 5
kubectl 24
kubelet 21
etcd 33"
}

version_flags() { # the version that --version prints
  local v=${kubernetes_version#v} p flags=''
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $p.gitVersion=v$v -X $p.gitMajor=${v%%.*} -X $p.gitMinor=$(cut -d. -f2 <<<"$v") -X $p.gitTreeState=clean -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  echo "$flags"
}

mkdir -p "$bin"
case ${1:-} in
  --plan) plan && exit ;;
  --oldest) missing=$(plan kube-apiserver) ;;
  --helm) missing=$(plan helm) ;;
  *) missing=$(plan) ;;
esac
exec 9>"$CACHE/build.lock"
flock --nonblock 9 || { say "waiting for another build of the Kubernetes binaries" && flock 9; }
trap parts_end EXIT
parts_begin "$missing"
if [[ ${1:-} == --oldest ]]; then
  build kube-apiserver kubernetes-oldest k8s.io/kubernetes/cmd/kube-apiserver "$(version_flags)"
  echo "$bin" && exit
fi
build helm helm helm.sh/helm/v4/cmd/helm "-X helm.sh/helm/v4/internal/version.version=$helm_version"
[[ ${1:-} != --helm ]] || { echo "$bin" && exit; }
for name in kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet; do
  build "$name" kubernetes "k8s.io/kubernetes/cmd/$name" "$(version_flags)"
done
build etcd etcd go.etcd.io/etcd/server/v3 ''
echo "$bin"
