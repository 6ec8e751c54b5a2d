/**
 * As many troubles as fit into six minutes, on three hosts. Alerts that wait for longer are pending in it, and those on
 * silent agents do not get so far: an agent counts as silent after ten minutes.
 */
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { packageName, partLabel, type Play, type Scene } from './troubles.ts'

type Part = 'looping' | 'failing' | 'stopped' | 'gone'
const reboot = { type: 'reboot' } as const

export const shortPlay: Play = {
  name: 'three-real-hosts',
  nodeCount: 3,
  scenesOf,
  endsAtMinute: 5.25,
  scrapeIntervalMs: 10_000,
}

function specOf(part: Part, version: PackageSpec, rest: Partial<SkyhookSpec> = {}): SkyhookSpec {
  return { nodeSelectors: { matchLabels: { [partLabel]: part } }, packages: { [packageName]: version }, ...rest }
}

/** The first node reboots again and again; the second one fails; the third one waits for it, then its drain blocks. */
function scenesOf(nodes: readonly string[]): readonly Scene[] {
  const [looping = '', failing = '', gone = ''] = nodes
  const again: Scene[] = [1.3, 1.75, 2.2].map((atMinute) => ({
    atMinute,
    title: 'somebody asks for the reboot again',
    play: (actors) => actors.requestInterrupt(looping, 'looping'),
  }))
  const scenes: readonly Scene[] = [
    {
      atMinute: 0.1,
      title: 'the nodes get their parts',
      async play(actors) {
        await actors.labelNode(looping, { [partLabel]: 'looping' })
        await actors.labelNode(failing, { [partLabel]: 'failing' })
        await actors.setFailing(failing, 'apply')
        await actors.setFailing(looping, 'post-interrupt-check')
        await actors.guardPods([gone])
      },
    },
    {
      atMinute: 0.8,
      title: 'two rollouts start',
      async play(actors) {
        const version = actors.packageOf('1.0.0')
        await actors.createSkyhook('looping', specOf('looping', actors.packageOf('1.0.0', reboot)))
        await actors.createSkyhook('failing', specOf('failing', version, { interruptionBudget: { count: 1 } }))
      },
    },
    {
      atMinute: 0.95,
      title: 'a second node waits for the failing one',
      play: (actors) => actors.labelNode(gone, { [partLabel]: 'failing' }),
    },
    ...again,
    {
      atMinute: 2.1,
      title: 'both get another Skyhook',
      async play(actors) {
        await actors.labelNode(failing, { [partLabel]: 'stopped' })
        await actors.labelNode(gone, { [partLabel]: 'gone' })
        await actors.createPolicy('one-try', {
          default: { budget: { count: 1 }, strategy: { fixed: { initialBatch: 1, failureThreshold: 1 } } },
        })
        await actors.createSkyhook(
          'stopped',
          specOf('stopped', actors.packageOf('1.0.0'), { deploymentPolicy: 'one-try' }),
        )
        await actors.createSkyhook('gone', specOf('gone', actors.packageOf('1.0.0', reboot)))
      },
    },
    { atMinute: 3.1, title: 'an agent goes away at work', play: (actors) => actors.stopAgents([gone]) },
    {
      atMinute: 3.25,
      title: 'the Skyhook lets go of the node without an agent',
      play: (actors) => actors.labelNode(gone, { [partLabel]: null }),
    },
    { atMinute: 4.1, title: 'all agents go away', play: (actors) => actors.stopAgents(nodes) },
  ]
  return scenes.toSorted((one, other) => one.atMinute - other.atMinute)
}
