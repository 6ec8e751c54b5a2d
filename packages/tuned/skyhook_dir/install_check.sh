#!/bin/bash
# Is tuned there, running, and started at each boot?
set -Eeuo pipefail

wrong=0
for program in tuned tuned-adm; do
  command -v "$program" >/dev/null || { echo "tuned: $program is missing" >&2 && wrong=$((wrong + 1)); }
done
for state in active enabled; do
  systemctl --quiet "is-$state" tuned || { echo "tuned: the service is not $state" >&2 && wrong=$((wrong + 1)); }
done
((wrong == 0))
