#!/bin/bash
# Installs the updates that the keys ask for, and sets up the timer that looks for later ones. Reboots nothing.
set -Eeuo pipefail
# shellcheck source=SCRIPTDIR/common.sh
source "${STEP_ROOT:?is set by the agent}/common.sh"
read_keys

"${manager}_mend"
"${manager}_refresh"
updates=$(list_updates "$scope" filtered)
if [[ -z $updates ]]; then
  echo "nothing to install"
else
  echo "to install:"
  echo "$updates"
  # shellcheck disable=SC2086 # names and versions, one word each
  "${manager}_install" $updates
fi

# The timer's copy: whole or not there. It has the keys of this stage, until the next.
rm -rf "$kept.new"
mkdir -p "$kept.new/configmaps"
cp -r "$STEP_ROOT" "$kept.new/skyhook_dir"
if [[ -d $keys ]]; then find -L "$keys" -maxdepth 1 -type f -exec cp -L -t "$kept.new/configmaps" {} +; fi
cp /proc/sys/kernel/random/boot_id "$kept.new/boot-id"
sync -f "$kept.new"
rm -rf "$kept"
mv -T "$kept.new" "$kept"

cat >"$unit_folder/$unit.service" <<UNIT
[Unit]
Description=Look for updates of this host (package $package of Skyhook ${root##*/})
After=network-online.target
[Service]
Type=oneshot
Environment=SKYHOOK_RESOURCE_ID=$SKYHOOK_RESOURCE_ID SKYHOOK_ROOT_DIR=$root SKYHOOK_DIR=$kept STEP_ROOT=$kept/skyhook_dir
ExecStart=/bin/bash $kept/skyhook_dir/report.sh refresh
Nice=10
TimeoutStartSec=15min
UNIT
if [[ $check_every == never ]]; then
  [[ ! -f $unit_folder/$unit.timer ]] || systemctl disable --now "$unit.timer"
  rm -f "$unit_folder/$unit.timer"
  systemctl daemon-reload
else
  # Spread over a tenth of an hour, so that a thousand hosts do not ask at once. No limit of starts: systemd 257 counts
  # those of timers, and the stage may be tried again and again.
  cat >"$unit_folder/$unit.timer" <<UNIT
[Unit]
Description=Look for updates of this host (package $package of Skyhook ${root##*/})
StartLimitIntervalSec=0
[Timer]
OnBootSec=2min
OnUnitInactiveSec=$check_every
OnActiveSec=$check_every
RandomizedDelaySec=6min
[Install]
WantedBy=timers.target
UNIT
  systemctl daemon-reload
  systemctl enable "$unit.timer"
  systemctl restart "$unit.timer"
fi

exec "$STEP_ROOT/report.sh"
