/** The unit that runs a step of a package. Pure: callers choose its name and know whether it ran before. */
import { posix } from 'node:path'
import { recorderVariables } from '../../host/step/environment.ts'
import type { StepUnitRequest } from '../../host/step/start.ts'
import type { CommandArgument } from '../../host/systemd/unit-properties.ts'
import type { Step } from '../../schemas/package-config.ts'
import type { PackageResources, PackageSpec } from '../../schemas/skyhook.ts'
import type { ComposedStep } from './environment.ts'
import { scriptsDir, type PackageInstance } from '../layout.ts'
import { countIn } from './quantity.ts'

export type StepUnitInputs = {
  /** Id and unit name of this attempt, as journaled. */
  readonly attempt: { readonly id: string; readonly unit: string; readonly mode: string }
  readonly instance: Pick<PackageInstance, 'skyhook' | 'name' | 'version'>
  readonly step: Step
  readonly composed: Extract<ComposedStep, { outcome: 'composed' }>
  /** Absolute path on the host of this package's copy dir. */
  readonly copyDir: string
  readonly logs: { readonly stdout: string; readonly stderr: string }
  /** As the package's spec sets them. */
  readonly properties: StepProperties
  /** The rest of the stage's time; undefined without a stageTimeout. */
  readonly timeoutMs?: number | undefined
  /** gracefulShutdown: the time from SIGTERM to SIGKILL. */
  readonly stopTimeoutMs: number
  /** The host enforces SELinux: systemd may not execute a file with the label of the agent's files. */
  readonly isSelinuxEnforcing: boolean
}

type StepProperties = NonNullable<StepUnitRequest['properties']>

/** The step's script, executed without a shell, in the copy dir. */
export function stepUnitRequest({
  attempt,
  instance,
  step,
  composed,
  copyDir,
  logs,
  properties,
  timeoutMs,
  stopTimeoutMs,
  isSelinuxEnforcing,
}: StepUnitInputs): StepUnitRequest {
  const script = posix.join(scriptsDir(copyDir), step.path)
  // these would override the recorder's own variables: they get other names in the environment file
  const renamed = Object.keys(composed.environment).filter((name) => recorderVariables.has(name))
  const nameInFile = (name: string): string => (recorderVariables.has(name) ? `SKYHOOK_ENV_${name}` : name)
  const assignments = renamed.map((name) => ({ prefix: `${name}=`, variable: nameInFile(name) }))
  // Through env(1) only if needed: a missing interpreter then exits with 127, like any script, instead of systemd's
  // 203.
  const program: readonly [string, ...CommandArgument[]] =
    isSelinuxEnforcing || assignments.length > 0 ? ['/usr/bin/env', ...assignments, script] : [script]
  const stepArguments = composed.arguments.map((one) =>
    typeof one === 'string' ? one : { ...one, variable: nameInFile(one.variable) },
  )
  return {
    id: attempt.id,
    unit: attempt.unit,
    description: `Skyhook ${instance.skyhook}: ${instance.name} ${instance.version}, ${attempt.mode} ${step.path}`,
    command: [...program, ...stepArguments],
    workingDirectory: copyDir,
    environment: Object.fromEntries(
      Object.entries(composed.environment).map(([name, value]) => [nameInFile(name), value]),
    ),
    stdoutFile: logs.stdout,
    stderrFile: logs.stderr,
    stopTimeoutMs,
    properties,
    ...(timeoutMs !== undefined && { timeoutMs }),
  }
}

export type SpecProperties =
  | { readonly outcome: 'properties'; readonly properties: StepProperties }
  /** Sentences that name the field: the user must edit the Skyhook. */
  | { readonly outcome: 'invalid'; readonly problems: readonly string[] }

/**
 * The properties that a package's spec sets for the units of its steps. Absent or zero resources mean unlimited. Limits
 * are hard. Requests give a share (CPU) or protection (memory) against the rest of the host, by the kubelet's formulas.
 */
export function propertiesOf({ resources = {} }: Partial<PackageSpec>): SpecProperties {
  const problems: string[] = []
  const read = (field: keyof PackageResources, unit: string): number | undefined => {
    const quantity = resources[field]
    if (quantity === undefined) return undefined
    const amount = countIn(quantity, unit)
    if (amount === undefined) problems.push(`resources.${field} ${JSON.stringify(quantity)} is not a quantity`)
    return amount === undefined || amount === 0n ? undefined : Math.min(Number(amount), Number.MAX_SAFE_INTEGER)
  }
  const cpuLimit = read('cpuLimit', '1m')
  const cpuRequest = read('cpuRequest', '1m')
  const memoryLimit = read('memoryLimit', '1')
  const memoryRequest = read('memoryRequest', '1')
  if (problems.length > 0) return { outcome: 'invalid', problems }
  return {
    outcome: 'properties',
    properties: {
      ...(cpuLimit !== undefined && { CPUQuotaPerSecUSec: cpuLimit * 1000 }),
      ...(cpuRequest !== undefined && { CPUWeight: cpuWeight(cpuRequest) }),
      ...(memoryLimit !== undefined && { MemoryMax: memoryLimit }),
      ...(memoryRequest !== undefined && { MemoryLow: memoryRequest }),
    },
  }
}

/** Shares of cgroup v1 (1024 per core) on the scale of v2's cpu.weight. */
function cpuWeight(milliCores: number): number {
  const shares = Math.min(Math.max(Math.floor((milliCores * 1024) / 1000), 2), 262_144)
  return 1 + Math.floor(((shares - 2) * 9999) / 262_142)
}
