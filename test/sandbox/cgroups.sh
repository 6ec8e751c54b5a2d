# The cgroups of one sandbox, of v1 (hybrid or legacy view) or of v2. Sourced by common.sh; has no effect by itself.
# shellcheck shell=bash
#
# $TREE   up   COMPONENT   forward-NAME   hosts/HOST
#   v1: a host's loop, nspawn and systemd share hosts/HOST, which also exists in the hierarchy of each controller
#   v2: hosts/HOST/loop and hosts/HOST/boot-N (of nspawn: supervisor and payload, which the host sees as its root)
#       A group whose children have controllers contains no process itself, so the inner groups are empty.

# This cgroup contains exactly the processes of the sandbox, with one child per component and host: the kernel keeps the
# list of processes, so no pid file can go stale and `down` finds what a killed `up` left.
if [[ -e /sys/fs/cgroup/systemd/cgroup.procs ]]; then
  CGROUPS=v1 TREE=/sys/fs/cgroup/systemd/$NAME
elif [[ -d /run/systemd/system ]]; then # the machine's systemd owns all groups but those of a unit that asks for its own
  CGROUPS=v2 TREE=/sys/fs/cgroup/system.slice/$NAME.service
else
  CGROUPS=v2 TREE=/sys/fs/cgroup/$NAME
fi
is_v2() { [[ $CGROUPS == v2 ]]; }

# What a sandbox needs and the machine lacks. Without them a kubelet starts no pod, and limits of units do nothing.
missing_controllers() {
  local controller
  for controller in memory cpu pids; do
    if is_v2; then
      grep -qsw "$controller" /sys/fs/cgroup/cgroup.controllers || echo "$controller"
    else
      [[ -e /sys/fs/cgroup/$controller/cgroup.procs ]] || echo "$controller"
    fi
  done
}

pass_controllers() { # pass_controllers PATH: the children of that group get all its controllers (v2)
  local controller
  for controller in $(<"$1/cgroup.controllers"); do
    echo "+$controller" >"$1/cgroup.subtree_control" || true # each alone: one that cannot be passed keeps no other back
  done 2>/dev/null
  for controller in memory cpu pids; do
    grep -qw "$controller" "$1/cgroup.subtree_control" || die "the cgroup $1 does not pass the controller '$controller' to its children"
  done
}

move_processes() { # move_processes FROM TO
  local pid
  mkdir -p "$2"
  while read -r pid; do echo "$pid" >"$2/cgroup.procs"; done <"$1/cgroup.procs" 2>/dev/null || true # it has ended
}

tree_up() { # may be called by several processes at once, and again
  [[ ! -d $TREE/hosts || ! -e $STATE/cgroup ]] || return 0
  if is_v2; then
    if [[ $TREE == *.service ]]; then
      # Its first process only keeps the unit active. `systemctl stop`, and a shutdown of the machine, kill the sandbox
      # at once. Another `up` may have started it meanwhile.
      systemd-run --quiet --collect --unit="$NAME.service" --description="sandbox $SANDBOX of $REPOSITORY" \
        --service-type=exec --property=Delegate=yes --property=KillSignal=SIGKILL --property=TasksMax=infinity \
        sleep infinity 2>/dev/null || true
      within 10 test -d "$TREE" || die "systemd started no unit $NAME.service"
      move_processes "$TREE" "$TREE/keeper"
    else
      # the machine's root may contain processes beside groups; that of a cgroup namespace may not
      [[ ! -e /sys/fs/cgroup/cgroup.type ]] || move_processes /sys/fs/cgroup /sys/fs/cgroup/init
      mkdir -p "$TREE"
      pass_controllers /sys/fs/cgroup
    fi
    pass_controllers "$TREE"
  fi
  mkdir -p "$TREE/hosts" "$STATE"
  ! is_v2 || pass_controllers "$TREE/hosts"
  echo "$TREE" >"$STATE/cgroup" # for tests
}

join_tree() { # join_tree GROUP: this process
  tree_up
  mkdir -p "$TREE/$1"
  echo "$BASHPID" >"$TREE/$1/cgroup.procs"
}
leave_tree() { # this process, if it is in there
  if is_v2; then
    grep -qF "${TREE#/sys/fs/cgroup}/" /proc/$BASHPID/cgroup || return 0
    echo "$BASHPID" >/sys/fs/cgroup/cgroup.procs 2>/dev/null || echo "$BASHPID" >/sys/fs/cgroup/init/cgroup.procs
  else
    echo "$BASHPID" >/sys/fs/cgroup/systemd/cgroup.procs
  fi
}

members() { # members [GROUP]: PIDs of the live processes in that part of the sandbox
  local path=$TREE/${1:-}
  [[ -d $path ]] || return 0
  # 0 stands for a process that is not visible from here
  find "$path" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -vx 0 || true
}
is_empty() { [[ -z $(members "$1") ]]; }

# ── of a host

loop_group() { if is_v2; then echo "hosts/$1/loop"; else echo "hosts/$1"; fi; }
host_groups_up() { # host_groups_up HOST: before its loop starts
  tree_up
  mkdir -p "$TREE/hosts/$1"
  ! is_v2 || pass_controllers "$TREE/hosts/$1"
}
join_boot() { # join_boot HOST N: this process, about to be nspawn. A group of its own for each boot: the last one may have remains
  is_v2 || return 0
  join_tree "hosts/$1/boot-$2"
}
join_beside() { # join_beside HOST LEADER: this process, about to enter the host. Its systemd can move it only if it sees its group
  local group=hosts/$1
  if is_v2; then
    group=$(sed -n 's/^0:://p' "/proc/$2/cgroup")
    group=${group#"${TREE#/sys/fs/cgroup}/"}
    group=${group%/init.scope}/exec
  fi
  join_tree "$group"
}

# v1: its own cgroup in every hierarchy: nspawn uses the one it is started in, and all hosts would share system.slice.
# It is below that of this shell, whose limits must hold; the named hierarchy is joined already (start_in).
join_hierarchies() { # join_hierarchies HOST
  local controllers path mount parent group file
  ! is_v2 || return 0
  while IFS=: read -r _ controllers path; do
    case $controllers in
      name=*) continue ;;
      '') mount=/sys/fs/cgroup/unified ;;
      *) mount=/sys/fs/cgroup/$controllers ;;
    esac
    [[ -e $mount/cgroup.procs ]] || continue
    parent=${path%/}
    parent=$mount${parent%%/skyhookd.*}
    group=$parent/$NAME/hosts/$1
    mkdir -p "$group"
    if [[ -e $group/cpuset.cpus ]]; then # it starts empty and then refuses processes
      for file in "$NAME" "$NAME/hosts" "$NAME/hosts/$1"; do
        cat "$parent/cpuset.cpus" >"$parent/$file/cpuset.cpus"
        cat "$parent/cpuset.mems" >"$parent/$file/cpuset.mems"
      done
    fi
    echo "$BASHPID" >"$group/cgroup.procs"
  done </proc/self/cgroup
}

# cgroups outlive nspawn, and a kubelet takes 3 s for each stale one of a pod.
clear_boots() { # clear_boots HOST
  local path
  { find /sys/fs/cgroup -type d -path "*/${TREE##*/}/hosts/$1" -prune 2>/dev/null || true; } | while read -r path; do # other hosts come and go concurrently
    # not the loop's own
    find "$path" -mindepth 1 -depth -type d ! -path "$path/loop" -exec rmdir {} + 2>/dev/null || true
  done
}

# ── freezing

freezer_of() { # freezer_of HOST. v1: a host's cgroup may be below that of the shell that started it
  if is_v2; then
    [[ ! -e $TREE/hosts/$1/cgroup.freeze ]] || echo "$TREE/hosts/$1"
  else
    find /sys/fs/cgroup/freezer -type d -path "*/$NAME/hosts/$1" -prune 2>/dev/null | head -n 1
  fi
}
freeze() { # freeze HOST
  local group
  group=$(freezer_of "$1")
  [[ -n $group ]] || die "no freezer cgroup for $1, which is needed to copy the disk as of one instant"
  if is_v2; then echo 1 >"$group/cgroup.freeze"; else echo FROZEN >"$group/freezer.state"; fi
  is_frozen() { if is_v2; then grep -qx 'frozen 1' "$1/cgroup.events"; else [[ $(<"$1/freezer.state") == FROZEN ]]; fi; }
  within 20 is_frozen "$group" || die_thawed "$1" "$1 did not freeze within 20 s"
}
die_thawed() { # die_thawed HOST MESSAGE: the host goes on as if nothing had been tried
  thaw "$1"
  die "$2"
}
thaw() { thaw_group "hosts/$1"; }

thaw_group() { # thaw_group [GROUP]: what an interrupted crash froze does not die (cgroup v1)
  local state
  if is_v2; then
    { find "$TREE/${1:-}" -name cgroup.freeze 2>/dev/null || true; } | while read -r state; do # groups vanish meanwhile
      echo 0 >"$state" 2>/dev/null || true
    done
    return 0
  fi
  { find /sys/fs/cgroup/freezer -path "*/$NAME/${1:-}*" -name freezer.state 2>/dev/null || true; } | while read -r state; do
    echo THAWED >"$state" 2>/dev/null || true
  done
}

# ── removal

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

remove_cgroups() { # remove_cgroups [GROUP]: in all hierarchies; v1: a host's cgroup may be below that of the shell that started it
  local path
  { find /sys/fs/cgroup -mindepth 1 -type d -name "${TREE##*/}" -prune 2>/dev/null || true; } | while read -r path; do
    [[ -d $path/${1:-} ]] && find "$path/${1:-}" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  # its keeper is dead: systemd removes the rest, and the unit, by itself
  [[ -n ${1:-} || $TREE != *.service ]] || within 20 test ! -d "$TREE" || die "systemd did not remove $NAME.service: systemctl status $NAME.service"
  return 0
}
