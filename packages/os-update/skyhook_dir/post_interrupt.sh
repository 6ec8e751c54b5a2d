#!/bin/bash
# What was true before the reboot is not any more.
exec "${STEP_ROOT:?is set by the agent}/report.sh"
