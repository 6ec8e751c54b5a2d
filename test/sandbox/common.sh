# Names, messages, waiting and the process tree of one sandbox. Sourced by every other file; changes nothing by itself.
# shellcheck shell=bash disable=SC2034 # the variables are for those who source this

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPOSITORY=$(cd "$HERE/../.." && pwd)
SANDBOX=${SANDBOX:-default}
CACHE=${SKYHOOKD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyhookd}
STATE=$REPOSITORY/.sandbox
[[ $SANDBOX == default ]] || STATE=$REPOSITORY/.sandbox-$SANDBOX

# Everything the kernel knows by a name (network namespaces, cgroups) carries this one. The digest tells two clones of the
# repository apart. The dot after it is not allowed in a sandbox's name, so `a` never matches what belongs to `a-b`.
ID=$SANDBOX-$(printf %s "$STATE" | md5sum | cut -c1-4)
NAME=skyhookd.$ID

# Every process of the sandbox is in this cgroup, one child per component and host, and no other process is:
# the kernel keeps the list of processes, so there are no pid files to go stale and `down` finds what a killed `up` left.
TREE=/sys/fs/cgroup/systemd/$NAME

say() { echo "sandbox: $*" >&2; }
die() {
  say "$*"
  exit 1
}
[[ $SANDBOX =~ ^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$ ]] || die "SANDBOX=$SANDBOX: lower-case letters, digits and dashes, at most 20"

began_us=${EPOCHREALTIME/[.,]/}
elapsed() { # seconds since this command began, one decimal
  local ms=$(((${EPOCHREALTIME/[.,]/} - began_us) / 1000))
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}
progress() { printf '+%5s s  %s\n' "$(elapsed)" "$*" >&2; }

within() { # within SECONDS CMD...: true as soon as CMD is; false when the time is over
  local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
  shift
  until "$@"; do
    ((${EPOCHREALTIME/[.,]/} < end)) || return 1
    sleep 0.1
  done
}

members() { # members [GROUP]: ids of the living processes in that part of the sandbox
  local path=$TREE/${1:-}
  [[ -d $path ]] || return 0
  # 0 stands for a process that cannot be seen from here
  find "$path" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -vx 0 || true
}
is_empty() { [[ -z $(members "$1") ]]; }

start_in() { # start_in GROUP LOG CMD...: CMD in the background, detached, in that part of the sandbox
  local group=$TREE/$1 log=$2
  shift 2
  mkdir -p "$group"
  ( # twice a subshell: it is nobody's child, so `wait` does not wait for it
    (
      echo "$BASHPID" >"$group/cgroup.procs"
      exec setsid "$@"
    ) </dev/null >>"$log" 2>&1 &
  )
}

wait_all() { # wait_all PID...: false as soon as one of them failed
  local job
  for job; do wait "$job" || return 1; done
}

kill_group() { # kill_group GROUP: all of it, at once, and waits until it is gone
  kill_members() {
    local pids
    pids=$(members "$1")
    [[ -z $pids ]] && return 0
    # shellcheck disable=SC2086 # one argument per process
    kill -KILL $pids 2>/dev/null
    return 1
  }
  within 20 kill_members "$1" || die "processes of $NAME/$1 do not die: $(members "$1" | tr '\n' ' ')"
}

remove_cgroups() { # remove_cgroups [GROUP]: in all hierarchies; a host's own may stand below the cgroup of whoever started it
  local path
  find /sys/fs/cgroup -mindepth 2 -type d -name "$NAME" -prune 2>/dev/null | while read -r path; do
    [[ -d $path/${1:-} ]] && find "$path/${1:-}" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  return 0
}
