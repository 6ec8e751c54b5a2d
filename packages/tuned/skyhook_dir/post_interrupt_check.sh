#!/bin/bash
# After the interrupt: no excuse is left.
set -Eeuo pipefail
INTERRUPT=false exec "${STEP_ROOT:?is set by the agent}/config_check.sh"
