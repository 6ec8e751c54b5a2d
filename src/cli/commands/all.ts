import type { Command } from '../base/framework/command.ts'
import { bundle } from './bundle.ts'
import { completion, version, options } from './tool.ts'
import { doctor } from './doctor.ts'
import { dashboard } from './dashboard.ts'
import { events } from './events.ts'
import { explain } from './explain.ts'
import { handBack, lifecycleCommands, reset, resetBatches } from './skyhook.ts'
import { history, logs, packageLogs } from './logs.ts'
import { nodeChangeCommands, nodeList, nodeStatus } from './node.ts'
import { packageBuild, packageInit, packagePush, packageRun, packageRerun, packageStatus } from './package.ts'
import { plan, validate } from './files.ts'
import { status } from './status.ts'

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
