/** The recordings that alerts and dashboard are tested on. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readRecording, type Recording } from './recording.ts'
import { shortPlay } from './short-play.ts'
import { recordSimulatedPlay } from './simulated-play.ts'
import { wholePlay } from './troubles.ts'

/** `make record-metrics` writes a folder for each play. */
export const recordingsFolder = join(import.meta.dirname, 'recordings')

export type Source = {
  readonly title: string
  readonly load: () => Promise<Recording>
  /** Alerts that fire in it. */
  readonly firing: readonly string[]
  /** Alerts whose trouble is there, and over before they fire. */
  readonly pending: readonly string[]
  /** Queries of the dashboard that show nothing above zero; undefined: alerts alone are tested on it. */
  readonly zero: readonly string[] | undefined
}

const everyAlert = [
  'SkyhookErroring',
  'SkyhookInputMissing',
  'SkyhookBudgetHeldByFailures',
  'SkyhookRolloutStopped',
  'SkyhookRebootLoop',
  'SkyhookDrainBlocked',
  'SkyhookStaleSlot',
  'SkyhookAgentMissing',
  'SkyhookLeftOverCordon',
  'SkyhookCensusMissing',
]
let simulated: Promise<Recording> | undefined

/** The play on simulated hosts, and what is stored of real ones. */
export function sources(): readonly Source[] {
  const stored = (
    { name }: { readonly name: string },
    expected: Pick<Source, 'firing' | 'pending' | 'zero'>,
  ): Source[] => {
    const folder = join(recordingsFolder, name)
    return existsSync(folder) ? [{ title: `on ${name}`, load: async () => readRecording(folder), ...expected }] : []
  }
  return [
    {
      title: 'on simulated hosts',
      load: () => (simulated ??= recordSimulatedPlay()), // takes half a minute
      firing: everyAlert,
      pending: [],
      zero: [],
    },
    // its queries take three minutes, and show what those on simulated hosts show
    ...stored(wholePlay, {
      // recorded before its play had a Secret that is missing
      firing: everyAlert.filter((alert) => alert !== 'SkyhookInputMissing'),
      pending: [],
      zero: undefined,
    }),
    ...stored(shortPlay, {
      firing: ['SkyhookRolloutStopped', 'SkyhookRebootLoop'],
      pending: [
        'SkyhookErroring',
        'SkyhookBudgetHeldByFailures',
        'SkyhookDrainBlocked',
        'SkyhookLeftOverCordon',
        'SkyhookCensusMissing',
      ],
      // no node completes, and no agent is away for long enough to count as silent
      zero: ['Nodes complete A', 'Progress A', 'Complete nodes A', 'Nodes that nobody looks after A'],
    }),
  ]
}
