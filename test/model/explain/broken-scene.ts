/** Breaks something around simulated agents, and carries out what explain prints. */
import { expect } from 'vitest'
import { type FleetScene, type SceneOptions, startScene } from '../../kit/fleet/fleet-scene.ts'
import { checkAgents } from '../../../src/cli/doctor/agents.ts'
import type { FindingId } from '../../../src/cli/doctor/finding.ts'
import { checkHosts } from '../../../src/cli/doctor/hosts.ts'
import type { NodeExplanation } from '../../../src/cli/reason/explain/explain-node.ts'
import type { Cause, Finding } from '../../../src/cli/reason/explain/finding.ts'
import { slimNode } from '../../../src/cli/fleet/fleet-view/project.ts'
import { readFleet } from '../../../src/cli/fleet/fleet-view/collections.ts'
import { mapped } from '../../../src/cli/fleet/fleet-view/readable.ts'
import { readVitals } from '../../../src/cli/fleet/fleet-view/vitals.ts'
import { reasonKey, statusKey } from '../../../src/schemas/annotations.ts'
import { createAgentLogs, type Outside, startOutside } from './outside.ts'
import { openNames, readPrinted } from './printed.ts'
import { type Edit, openShell, type Shell } from './shell.ts'

/** What changes in the world outside of the cluster when somebody does what the words say. */
type Heal = () => void

/** What has to be said, and what carrying out the remedy changes. */
type Expected = {
  readonly cause: Cause
  /** `Kind/name` of each finding, the first of each. */
  readonly objects: readonly string[]
  /** Causes of what else is broken, in order. */
  readonly also?: readonly Cause[]
  /** `Kind/name` of what else is broken on other nodes. */
  readonly elsewhere?: readonly string[]
  /** The words of the remedy that are carried out; `command`: the command is. */
  readonly remedy: string
  /** What the words name, in the cluster. */
  readonly mend?: (scene: FleetScene, outside: Outside) => void
  /** What the words name, where the command is `kubectl edit`. */
  readonly edit?: Edit
  /** A command within the words, which is carried out instead of the one below them. */
  readonly runs?: RegExp
  /** What the command has to show, and its exit status. */
  readonly shows?: RegExp
  readonly status?: number
}

/** What is broken around node1, and what becomes of it. */
export type BrokenScene = SceneOptions &
  Expected & {
    readonly title: string
    /** Breaks it, at the start. */
    readonly broken?: (scene: FleetScene, outside: Outside) => Heal | void
    /** Breaks it later; also waits for what `reason` does not say. */
    readonly reach?: (scene: FleetScene, outside: Outside) => Promise<Heal | void>
    /** What node1 has to publish. */
    readonly reason?: string
    readonly says?: readonly string[]
    readonly never?: readonly string[]
    readonly doctor?: readonly FindingId[]
    /** Where one remedy opens only the first gate: those that follow, each as it is printed then. */
    readonly next?: readonly Expected[]
    /** What progress is, where node1 cannot complete. */
    readonly isMended?: (scene: FleetScene) => boolean
  }

/** Nothing is wrong with a node that is next in line, waits for the other one, fetches its packages or reboots. */
const isHealthy: ReadonlySet<Cause> = new Set(['next-in-line', 'preparing', 'budget-full', 'reboot-pending'])

/** So long the world continues without anybody who helps. */
const withoutHelpMs = 40_000

type Play = { readonly scene: FleetScene; readonly outside: Outside; readonly shell: Shell }

/**
 * Explain names the cause first and nothing else; so it does later, for nothing heals by itself. Then what it prints is
 * carried out, and node1 completes. Returns what explain says of it then.
 */
export async function stateAfterRemedy(situation: BrokenScene): Promise<NodeExplanation['state'] | 'mended'> {
  const { broken, reason, reach, says = [], never = [], doctor = [], next = [] } = situation
  const logs = createAgentLogs()
  const scene = startScene({ ...situation, onFact: logs.note })
  const outside = startOutside(scene, logs)
  const play = { scene, outside, shell: openShell(scene, outside) }
  const isMended = (): boolean =>
    situation.isMended?.(scene) ?? scene.annotation('node1', statusKey('s')) === 'complete'
  const heals = [broken?.(scene, outside), await reach?.(scene, outside)]
  if (reason !== undefined)
    await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes(`"${reason}"`) === true, reason)
  await scene.pass(4_000) // Events follow later than reasons

  const text = await expectBlame(play, situation)
  for (const part of says) expect(text).toContain(part)
  for (const part of never) expect(text).not.toContain(part)
  expect(await doctorIds(play)).toEqual(doctor)
  await scene.pass(withoutHelpMs)
  expect(isMended(), 'it healed by itself').toBe(false)
  await expectBlame(play, situation)

  await obey(play, situation)
  for (const heal of heals) heal?.()
  for (const later of next) {
    await untilBlamed(play, later)
    await scene.pass(10_000)
    expect(isMended(), 'the first remedy is enough').toBe(false)
    await expectBlame(play, later)
    await obey(play, later)
  }
  await scene.until(isMended, 'node1 completes')
  await scene.pass(2_000)
  return situation.isMended ? 'mended' : (await explanationOf(play, 'node1')).state
}

async function explanationOf({ shell }: Play, node: string): Promise<NodeExplanation> {
  const { items } = JSON.parse(await shell.tool(`explain s ${node} -o json`)) as { items: [NodeExplanation] }
  return items[0]
}

const blamedIn = ({ gates }: NodeExplanation, expected: Cause): readonly Finding[] =>
  gates.flatMap(({ findings }) => findings).filter(({ cause }) => cause === expected || !isHealthy.has(cause))

/** The first remedy has its effect within two minutes. */
async function untilBlamed(play: Play, { cause, also = [] }: Expected): Promise<void> {
  const expected = [cause, ...also].join()
  for (let looks = 0; looks < 60; looks++) {
    await play.scene.pass(2_000)
    const found = await explanationOf(play, 'node1')
    if (
      blamedIn(found, cause)
        .map((one) => one.cause)
        .join() === expected
    )
      return
  }
}

const firstOf = ({ objects: [first] }: Finding): string => `${first?.kind}/${first?.name}`

/** The cause comes first, and nothing healthy is blamed: neither of node1 nor of the other nodes. Returns the text. */
async function expectBlame(play: Play, { cause, objects, also = [], elsewhere = [] }: Expected): Promise<string> {
  const { scene, shell } = play
  const found = await explanationOf(play, 'node1')
  const blamed = blamedIn(found, cause)
  expect(blamed.map((one) => one.cause)).toEqual([cause, ...also])
  expect(blamed.map(firstOf).slice(0, objects.length)).toEqual(objects)
  expect(found.verdict?.cause).toBe(cause)
  const printed = readPrinted(await shell.tool('explain s node1'))
  expect(printed.cause).toBe(cause)
  const named = new Set([...blamed.map(firstOf), 'Node/node1', ...elsewhere])
  for (const { metadata } of scene.simulation.server.objects('nodes')) {
    if (metadata.name === 'node1') continue
    const others = blamedIn(await explanationOf(play, metadata.name), cause).map(firstOf)
    expect(others.filter((name) => !named.has(name))).toEqual([])
  }
  return [printed.message, printed.unblock, printed.command].join('\n')
}

async function obey(
  { scene, outside, shell }: Play,
  { remedy, runs, edit, mend, shows = /^/, status = 0 }: Expected,
): Promise<void> {
  const printed = readPrinted(await shell.tool('explain s node1'))
  const { message, unblock, command } = printed
  expect(`${unblock}\n${command}`).not.toMatch(openNames)
  if (remedy !== 'command') expect(`${message} ${unblock}`).toContain(remedy)
  const [line = command] = runs?.exec(unblock) ?? []
  const shown = await shell.run(line, edit)
  expect({ line, ...shown }).toMatchObject({ status })
  expect(shown.output).toMatch(shows)
  mend?.(scene, outside)
}

async function doctorIds({ scene, outside }: Play): Promise<readonly FindingId[]> {
  const { clock } = scene.simulation
  const transport = outside.withObjects(scene.transport)
  const fleet = await readFleet(transport, { namespace: 'skyhook', clock, nodeOf: slimNode })
  const vitals = await readVitals(transport, { namespace: 'skyhook' })
  // nodes that joined a moment ago may be NotReady
  const nodes = mapped(fleet.nodes, (all) =>
    all.map((one) => ({ ...one, metadata: { ...one.metadata, creationTimestamp: '2020-01-01T00:00:00Z' } })),
  )
  const checks = [checkAgents({ fleet, nodes, vitals, suspicions: [] }), checkHosts(fleet, nodes)]
  return checks.flatMap(({ findings }) => findings.map(({ id }) => id))
}
