# One line of progress for what is built once. Sourced by common.sh and build-binaries.sh; has no effect by itself.
# shellcheck shell=bash
#
# $PARTS   folder of a build, shared by all its processes: `plan` (CHAIN SECONDS NAME, one line for each part)
#          NAME.began   NAME.ended (seconds of the clock)   NAME.job (process group)
# Parts of a chain are built one after another, chains side by side. SECONDS is what the part took on two processors.

BUILD_LOG=$CACHE/build.log

# progress_text NOW [NAME]: `building NAME, part 3 of 8, about 6 min left`. NAME is the part that everything waits for, the
# one of the longest chain, if none is given. Standard input: CHAIN SECONDS BEGAN ENDED NAME for each part, `-` for what has not happened.
# The rest is the seconds of the plan, scaled by how the parts went so far. A minute that went as planned counts with
# them, so that a first part of a second does not promise the rest in seconds. A part that takes longer than it should
# is expected to take a tenth more.
progress_text() {
  awk -v now="$1" -v what="${2:-}" '
    {
      chain[NR] = $1; planned[NR] = $2; began[NR] = $3; ended[NR] = $4
      sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ /, ""); name[NR] = $0
      if (began[NR] == "-") next
      begun++
      elapsed = (ended[NR] == "-" ? now : ended[NR]) - began[NR]
      # one that another process has built meanwhile took no time and says nothing
      if (ended[NR] != "-" ? elapsed >= 1 : elapsed > planned[NR]) { took += elapsed; weight += planned[NR] }
    }
    END {
      scale = (took + 60) / (weight + 60)
      for (i = 1; i <= NR; i++) {
        if (ended[i] != "-") continue
        left = planned[i] * scale
        if (began[i] != "-") {
          elapsed = now - began[i]
          left = left - elapsed > elapsed / 10 ? left - elapsed : elapsed / 10
          running[chain[i]] = name[i]
        }
        rest[chain[i]] += left
      }
      for (one in rest) {
        if (rest[one] > longest) longest = rest[one]
        if (one in running && (shown == "" || rest[one] > rest[shown])) shown = one
      }
      if (what == "") what = running[shown]
      printf "%s, part %d of %d, %s\n", what == "" ? "building" : "building " what, begun, NR,
        longest < 45 ? "less than a minute left" : sprintf("about %d min left", longest / 60 + 0.5)
    }'
}

parts_text() { # parts_text [NAME]
  local chain seconds name began ended
  while read -r chain seconds name; do
    began=$(cat "$PARTS/$name.began" 2>/dev/null) || began=-
    ended=$(cat "$PARTS/$name.ended" 2>/dev/null) || ended=-
    echo "$chain $seconds $began $ended $name"
  done <"$PARTS/plan" | progress_text "$EPOCHSECONDS" "$@"
}

# A terminal shows one line, rewritten each second; elsewhere each part has a line, and another one each minute.
# The wait is not `sleep`, which would outlive it.
paint_parts() {
  trap - ERR EXIT
  while [[ -e $PARTS/plan ]] && kill -0 $$ 2>/dev/null; do
    if [[ -t 2 ]]; then
      printf '\r%.79s\033[K' "$(parts_text)" >&2
      read -rt 1 <> <(:) || true
    else
      read -rt 60 <> <(:) || say "still $(parts_text)"
    fi
  done
}
unpaint() { [[ ! -t 2 || -z ${PARTS:-} ]] || printf '\r\033[K' >&2; }

parts_begin() { # parts_begin PLAN: does nothing without parts, and in a process whose caller has begun
  local total text
  [[ -n $1 && -z ${PARTS:-} ]] || return 0
  PARTS=$(mktemp -d "$CACHE/parts.XXXXXX")
  export PARTS
  echo "$1" >"$PARTS/plan"
  total=$(wc -l <"$PARTS/plan")
  text=$(parts_text)
  text=${text##*, } text=${text% left}
  say "building $total part$( ((total == 1)) || echo s) once, $text; the log of everything is $BUILD_LOG"
  printf '\n── %(%F %T)T\n' >>"$BUILD_LOG"
  paint_parts 9>&- &
  painter=$!
}
is_planned() { [[ -n ${PARTS:-} ]] && cut -d' ' -f3- "$PARTS/plan" | grep -qxF "$1"; }

# part NAME COMMAND...: its output goes into the log, each line with the name before it. Exits if the command fails. In a
# process group of its own, which parts_end can kill. Never call it as a condition: `set -e` would not hold in the command.
part() {
  local name=$1 job
  shift
  is_planned "$name" || return 0
  echo "$EPOCHSECONDS" >"$PARTS/$name.began"
  [[ -t 2 ]] || say "$(parts_text "$name")"
  set -m
  { "$@" 2>&1 | sed -u "s|^|$name: |"; } </dev/null >>"$BUILD_LOG" 2>&1 &
  job=$!
  set +m
  echo "$job" >"$PARTS/$name.job"
  if ! wait "$job"; then
    say "$name failed. The last lines of $BUILD_LOG about it:"
    grep "^$name: " "$BUILD_LOG" | tail -n 8 >&2
    exit 1
  fi
  part_ended "$name"
}
part_ended() { # part_ended NAME: also of one that another process has built
  is_planned "$1" || return 0
  [[ -e $PARTS/$1.began ]] || echo "$EPOCHSECONDS" >"$PARTS/$1.began"
  echo "$EPOCHSECONDS" >"$PARTS/$1.ended"
  [[ -t 2 ]] || say "built $1 in $((EPOCHSECONDS - $(<"$PARTS/$1.began"))) s"
}

parts_end() { # also where something failed, and again: kills what is still being built
  local file
  [[ -n ${painter:-} ]] || return 0
  kill "$painter" 2>/dev/null || true
  unpaint
  for file in "$PARTS"/*.job; do
    [[ ! -e $file || -e ${file%.job}.ended ]] || kill -- "-$(<"$file")" 2>/dev/null || true
  done
  rm -rf "$PARTS"
  painter='' PARTS=''
}
