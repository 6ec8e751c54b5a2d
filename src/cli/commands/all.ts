import type { Command } from '../framework/command.ts'
import { bundle } from './bundle.ts'
import { completion } from './completion.ts'
import { doctor } from './doctor.ts'
import { dashboard } from './dashboard.ts'
import { events } from './events.ts'
import { explain } from './explain.ts'
import { handBack } from './hand-back.ts'
import { history } from './history.ts'
import { lifecycleCommands } from './lifecycle.ts'
import { logs } from './logs.ts'
import { nodeChangeCommands } from './node-changes.ts'
import { nodeList, nodeStatus } from './node-views.ts'
import { options } from './options.ts'
import { packageLogs } from './package-logs.ts'
import { packageBuild } from './package-build.ts'
import { packageInit } from './package-init.ts'
import { packagePush } from './package-push.ts'
import { packageRun } from './package-run.ts'
import { packageRerun, packageStatus } from './package-state.ts'
import { plan } from './plan.ts'
import { reset, resetBatches } from './reset.ts'
import { status } from './status.ts'
import { validate } from './validate.ts'
import { version } from './version.ts'

/** Every command, in the order of the help. */
export const allCommands: readonly Command[] = [
  status,
  explain,
  doctor,
  plan,
  bundle,
  dashboard,
  events,
  logs,
  history,
  nodeList,
  nodeStatus,
  packageStatus,
  packageLogs,
  ...lifecycleCommands,
  reset,
  ...nodeChangeCommands,
  packageRerun,
  resetBatches,
  handBack,
  validate,
  packageInit,
  packageBuild,
  packagePush,
  packageRun,
  completion,
  options,
  version,
]
