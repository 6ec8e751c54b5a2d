#!/bin/bash
# Removes the timer, its copy of scripts and keys, and the status file. Updates stay installed. Needs no keys.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"

[[ ! -f $unit_folder/$unit.timer ]] || systemctl disable --now "$unit.timer"
systemctl stop "$unit.service" || true # not there
rm -f "$unit_folder/$unit".{timer,service}
systemctl daemon-reload
rm -rf "$kept" "$kept.new" "$status_file" "$status_file.new"
