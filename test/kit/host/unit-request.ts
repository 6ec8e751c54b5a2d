/** What a transient unit is asked to do, from the properties that came over the bus. */
import type { Variant } from 'dbus-next/lib/variant.js'
import type { HostStep } from './observer.ts'

export type UnitRequest = {
  readonly unit: string
  readonly description: string
  readonly program: string
  readonly argv: readonly string[]
  readonly environmentFile: string | undefined
  readonly stdoutFile: string | undefined
  readonly timeoutMs: number
  readonly stopTimeoutMs: number
  readonly isReferenced: boolean
  /** Where the recorder of the result writes, and under which name. */
  readonly record: { readonly folder: string; readonly attempt: string } | undefined
}

type Command = readonly [program: string, argv: readonly string[], mayFail: boolean]

export function readUnitRequest(unit: string, properties: readonly (readonly [string, Variant])[]): UnitRequest {
  const values = new Map(properties.map(([name, { value }]) => [name, value as unknown]))
  const [program = '', argv = []] = (values.get('ExecStart') as readonly Command[])[0] ?? []
  const recorder = (values.get('ExecStopPost') as readonly Command[] | undefined)?.[0]?.[1]
  const [, , folder, attempt] = recorder ?? []
  const files = values.get('EnvironmentFiles') as readonly (readonly [string, boolean])[] | undefined
  return {
    unit,
    description: (values.get('Description') as string | undefined) ?? '',
    program,
    argv,
    environmentFile: files?.[0]?.[0],
    stdoutFile: values.get('StandardOutputFileToAppend') as string | undefined,
    timeoutMs: millisecondsOf(values.get('TimeoutStartUSec')),
    stopTimeoutMs: millisecondsOf(values.get('TimeoutStopUSec')),
    isReferenced: values.get('AddRef') === true,
    record: folder === undefined || attempt === undefined ? undefined : { folder, attempt },
  }
}

/** Times are in microseconds; the largest number is never. */
function millisecondsOf(value: unknown): number {
  const microseconds = (value as bigint | undefined) ?? 0xffff_ffff_ffff_ffffn
  return microseconds === 0xffff_ffff_ffff_ffffn ? Infinity : Number(microseconds) / 1000
}

/** `Skyhook s: tuned 1.2.0, config-check check.sh`, as the agent describes a step. */
const stepDescription = /^Skyhook (\S+): (\S+) (\S+), (\S+) (.+)$/

export function readStepDescription(description: string) {
  const [, skyhook = '', name = '', version = '', mode = '', path = ''] = stepDescription.exec(description) ?? []
  return { skyhook, package: name, version, mode, path }
}

/** `…/tuned-1.2.0-<uid>-<generation>/skyhook_dir/check.sh`: uid and generation of the Skyhook. */
const stepProgram = /-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-(\d+)\/skyhook_dir\//

export function readSkyhookOf({ program, argv }: UnitRequest): Pick<HostStep, 'skyhookUid' | 'generation'> {
  for (const word of [program, ...argv]) {
    const [, skyhookUid, generation] = stepProgram.exec(word) ?? []
    if (skyhookUid !== undefined) return { skyhookUid, generation: Number(generation) }
  }
  return {}
}
