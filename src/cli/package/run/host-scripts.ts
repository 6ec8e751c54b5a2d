/** The scripts around a throw-away host, for the shell of this machine (`supervisor`) and of the host (`init`). */

/**
 * Boots the host once and waits for its end, whose code it exits with: 133 for a reboot. In a mount namespace of its
 * own, which takes the mounts with it. Its standard input is held open by the tool: when that ends, by itself or
 * because the tool was killed, it kills the host; and where the tool is gone, it removes the folder too.
 *
 * $1: base. $2: name. The rest: the arguments of systemd-nspawn. Current folder: that of the run.
 */
export const supervisor = `
exec >>console.log 2>&1 3<&0 </dev/null
base=$1 name=$2 folder=$PWD
shift 2
parent=$(grep '^PPid:' /proc/$$/status)
mount --bind -- "$base" base
mount -t overlay "$name" -o lowerdir=base,upperdir=upper,workdir=work root

# Where systemd runs, it makes a scope. Elsewhere the host gets a cgroup of its own in each hierarchy.
join_cgroups() {
  while IFS=: read -r _ controllers path; do
    case $controllers in
    name=*) mount=/sys/fs/cgroup/\${controllers#name=} ;;
    '')
      mount=/sys/fs/cgroup/unified
      # v2 alone: a group passes its controllers on only if it contains no process itself, as the top one may
      if [ ! -e "$mount" ]; then
        mount=/sys/fs/cgroup path=/
        for controller in $(cat "$mount/cgroup.controllers"); do
          echo "+$controller" >"$mount/cgroup.subtree_control" || :
        done
      fi
      ;;
    *) mount=/sys/fs/cgroup/$controllers ;;
    esac
    group=$mount\${path%/}
    [ -w "$group/cgroup.procs" ] || continue
    mkdir -p "$group/$name"
    if [ -e "$group/cpuset.cpus" ] && [ -e "$group/cpuset.mems" ]; then # v1: it starts empty and refuses processes
      for setting in cpuset.cpus cpuset.mems; do cat "$group/$setting" >"$group/$name/$setting" 2>&1 || :; done
    fi
    echo "$group/$name" >>cgroups
    sh -c 'echo $PPID' >"$group/$name/cgroup.procs"
  done </proc/self/cgroup
}

(
  if [ ! -d /run/systemd/system ]; then
    rm -f cgroups
    join_cgroups
    exec systemd-nspawn --keep-unit "$@"
  fi
  # In a unit that nspawn makes itself it also boots again by itself, and nobody sees the reboot.
  exec systemd-run --quiet --scope --collect --unit="$name" --property=Delegate=yes systemd-nspawn --keep-unit "$@"
) 3<&- &
host=$!

children() { grep -ls "^PPid:[[:space:]]*$host\\$" /proc/[0-9]*/status | sed 's|/proc/||; s|/status||' || :; }
watch_tool() {
  read -r _ <&3 || :
  tries=0
  while [ -d "/proc/$host" ] && [ "$tries" -lt 50 ]; do
    for process in $(children); do kill -KILL "$process" 2>/dev/null || :; done
    tries=$((tries + 1))
    sleep 0.1
  done
  kill -KILL "$host" 2>/dev/null || :
}
watch_tool &
watcher=$!
code=0
wait "$host" || code=$?
kill "$watcher" 2>/dev/null || :

if [ -e cgroups ]; then
  while read -r group; do
    for try in 1 2 3 4 5 6 7 8 9 10; do
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
      [ -e "$group" ] || break
      sleep 0.1
    done
  done <cgroups
fi
if [ "$parent" != "$(grep '^PPid:' /proc/$$/status)" ]; then
  cd /
  umount "$folder/root" "$folder/base"
  rm -rf --one-file-system "$folder"
fi
exit "$code"
`

/**
 * The first program of the host. Kernel settings that would be those of this machine are copies, so packages can write
 * them and nobody else notices; a reboot forgets them, as it should. A network of its own has its own settings.
 */
export const init = `#!/bin/sh
copies=/run/skyhook-run/settings
mkdir -p "$copies"
copy_of() { # copy_of FOLDER NAME KEPT...: puts a writable copy over it, but keeps what is the host's own already
  folder=$1 copy=$copies/$2
  shift 2
  [ -d "$folder" ] || return 0
  mkdir -p "$copy"
  for entry in "$folder"/*; do
    case \${entry##*/} in binfmt_misc) ;; *) cp -r --no-preserve=all "$entry" "$copy/" 2>/dev/null ;; esac
  done
  for kept in "$@"; do
    if [ -e "$folder/$kept" ]; then mount --rbind "$folder/$kept" "$copy/$kept"; fi
  done
  mount --rbind "$copy" "$folder"
}
copy_of /proc/sys/vm vm
copy_of /proc/sys/fs fs
copy_of /proc/sys/user user
copy_of /proc/sys/kernel kernel random hostname domainname pty ns_last_pid
copy_of /sys/kernel/mm/transparent_hugepage transparent_hugepage
for systemd in /usr/lib/systemd/systemd /lib/systemd/systemd; do
  [ -x "$systemd" ] && exec "$systemd" "$@"
done
echo "this host has no systemd" >&2
exit 1
`

/**
 * What a look at the host sees: files, their hashes, kernel settings, each part ended by an empty entry. Entries end in
 * NUL. $@: folders that are left out.
 */
export const snapshot = `
expression=''
set -f
for folder in "$@"; do expression="$expression -o -path $folder"; done
find / -xdev \\( -false $expression \\) -prune -o -printf '%p\\0%y %m %U:%G %l\\0'
printf '\\0'
find / -xdev \\( -false $expression \\) -prune -o -type f -print0 | xargs -0 -r sha256sum -z
printf '\\0'
grep -rsaHZ '' /proc/sys /sys/kernel/mm/transparent_hugepage
true
`
