# Names, messages, waiting and the process tree of one sandbox. Sourced by every other file; has no effect by itself.
# shellcheck shell=bash disable=SC2034 # the variables are for those who source this

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPOSITORY=$(cd "$HERE/../.." && pwd)
SANDBOX=${SANDBOX:-default}
CACHE=${SKYHOOKD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyhookd}
STATE=$REPOSITORY/.sandbox
[[ $SANDBOX == default ]] || STATE=$REPOSITORY/.sandbox-$SANDBOX

# All names in the kernel (network namespaces, cgroups) contain this one. The digest distinguishes two clones of the
# repository. A sandbox's name cannot contain the dot after it, so `a` never matches what belongs to `a-b`.
ID=$SANDBOX-$(printf %s "$STATE" | md5sum | cut -c1-4)
NAME=skyhookd.$ID

. "$HERE/progress.sh"
say() {
  unpaint
  echo "sandbox: $*" >&2
}
die() {
  say "$*"
  exit 1
}
[[ $SANDBOX =~ ^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$ ]] || die "SANDBOX=$SANDBOX is not a valid name: use at most 20 lower-case letters, digits and dashes"

began_us=${EPOCHREALTIME/[.,]/}
elapsed() { # seconds since this command began, one decimal
  local ms=$(((${EPOCHREALTIME/[.,]/} - began_us) / 1000))
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}
progress() { printf '+%5s s  %s\n' "$(elapsed)" "$*" >&2; }

within() { # within SECONDS CMD...: true as soon as CMD is; false after that time
  local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000 * ${SANDBOX_PATIENCE:-1})) # an emulated machine is ten times slower
  shift
  until "$@"; do
    ((${EPOCHREALTIME/[.,]/} < end)) || return 1
    sleep 0.1
  done
}

start_in() { # start_in GROUP LOG CMD...: CMD in the background, detached, in that part of the sandbox
  local group=$1 log=$2
  shift 2
  tree_up
  ( # two subshells: it is not a child of this shell, so `wait` does not wait for it
    (
      join_tree "$group"
      for descriptor in /proc/"$BASHPID"/fd/*; do # a terminal or a lock of whoever started it is not its own
        descriptor=${descriptor##*/}
        ((descriptor <= 2)) || eval "exec $descriptor>&-"
      done
      exec setsid "$@"
    ) </dev/null >>"$log" 2>&1 &
  )
}

wait_all() { # wait_all PID...: false as soon as one of them failed
  local job
  for job; do wait "$job" || return 1; done
}

. "$HERE/cgroups.sh"
