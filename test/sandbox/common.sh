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

# This cgroup contains exactly the processes of the sandbox, with one child per component and host: the kernel keeps the
# list of processes, so no pid file can go stale and `down` finds what a killed `up` left.
TREE=/sys/fs/cgroup/systemd/$NAME

say() { echo "sandbox: $*" >&2; }
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
  local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
  shift
  until "$@"; do
    ((${EPOCHREALTIME/[.,]/} < end)) || return 1
    sleep 0.1
  done
}

members() { # members [GROUP]: PIDs of the live processes in that part of the sandbox
  local path=$TREE/${1:-}
  [[ -d $path ]] || return 0
  # 0 stands for a process that is not visible from here
  find "$path" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -vx 0 || true
}
is_empty() { [[ -z $(members "$1") ]]; }

start_in() { # start_in GROUP LOG CMD...: CMD in the background, detached, in that part of the sandbox
  local group=$TREE/$1 log=$2
  shift 2
  mkdir -p "$group"
  ( # two subshells: it is not a child of this shell, so `wait` does not wait for it
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

thaw_group() { # thaw_group [GROUP]: what an interrupted crash froze does not die (cgroup v1)
  local state
  find /sys/fs/cgroup/freezer -path "*/$NAME/${1:-}*" -name freezer.state 2>/dev/null | while read -r state; do
    echo THAWED >"$state" 2>/dev/null || true
  done
}

kill_group() { # kill_group GROUP: kills all of it and waits until it is gone
  kill_members() {
    local pids
    pids=$(members "$1")
    [[ -z $pids ]] && return 0
    # shellcheck disable=SC2086 # one argument per process
    kill -KILL $pids 2>/dev/null
    return 1
  }
  thaw_group "$1"
  within 20 kill_members "$1" || die "processes of $NAME/$1 did not die within 20 s: $(members "$1" | tr '\n' ' ')"
}

remove_cgroups() { # remove_cgroups [GROUP]: in all hierarchies; a host's cgroup may be below that of the shell that started it
  local path
  find /sys/fs/cgroup -mindepth 2 -type d -name "$NAME" -prune 2>/dev/null | while read -r path; do
    [[ -d $path/${1:-} ]] && find "$path/${1:-}" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  return 0
}
