#!/bin/bash
# Runs configmaps/MODE.sh; usage: shellscript_run.sh MODE. A mode without a script has nothing to do.
# Sourced rather than executed, since files of a configMap have no execute bit: its last status, or its `exit`, is the result.
set -u

mode=${1:?MODE is missing}
scripts=${SKYHOOK_DIR:?is set by the agent}/configmaps

# Some agents run the uninstall without the configMap. What the last other stage was given is kept for it, beside the copy
# dirs, which agents collect.
IFS=_ read -r _ package _ <<<"${SKYHOOK_RESOURCE_ID:?is set by the agent}"
kept=${SKYHOOK_ROOT_DIR:?is set by the agent}/kept/$package

# Without the folders that the keys are links into. A crash leaves the old copy or none: its stage runs again.
keep_configuration() {
  rm -rf "$kept.new" && mkdir -p "$kept.new" || return
  if [[ -d $scripts ]]; then find -L "$scripts" -maxdepth 1 -type f -exec cp -L -t "$kept.new" {} + || return; fi
  sync -f "$kept.new" && rm -rf "$kept" && mv -T "$kept.new" "$kept"
}

case $mode in
  uninstall | uninstall_check) [[ -d $scripts || ! -d $kept ]] || scripts=$kept ;;
  apply | config | post_interrupt)
    keep_configuration || {
      echo "cannot keep the scripts for the uninstall in $kept" >&2
      exit 1
    }
    ;;
esac

status=0
if [[ -f $scripts/$mode.sh ]]; then
  # In a subshell, so that an `exit` ends only the script. A plain command, no part of a condition: bash would ignore the
  # script's own `set -e` there. Scripts find their data in $SKYHOOK_DIR/configmaps, or beside themselves.
  (
    set +u
    # shellcheck source=/dev/null
    source "$scripts/$mode.sh"
  )
  status=$?
else
  echo "the configMap has no $mode.sh, nothing to do"
fi

if [[ $mode == uninstall_check && $status == 0 ]]; then rm -rf "$kept"; fi
exit "$status"
