/**
 * Edits of a Skyhook, one after another, each planned and then applied: what the host did is what its plan foretold.
 * The evidence is the host's, a file to which steps and starts of the service append, and the Node's cordons.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { RehearsedStep } from '../../src/cli/reason/plan/rehearsal.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { pauseKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath } from '../../src/schemas/api.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { hasReadyAgent } from '../kit/cluster/agents.ts'
import { fixturePackages, useCluster } from '../kit/cluster/cluster.ts'
import type { Host } from '../kit/cluster/host.ts'
import type { View } from '../kit/cluster/moments.ts'
import { serviceStates, uncordonedStates } from '../kit/cluster/node-availability.ts'
import { claimNodes } from '../kit/cluster/node-locks.ts'
import { journalOf, type Manifest, manifest } from '../kit/cluster/skyhooks.ts'
import { type Deed, deedText, differenceOf, foretoldDeeds } from '../kit/plan/deeds.ts'
import { commandLine } from '../kit/tool/command-line.ts'

const cluster = useCluster()
const node = 'node-2'
const versions = ['1.0.0', '1.1.0', '2.0.0']
const completeMs = 120_000
/** An agent begins what it may begin within a second, also what no plan foretold. */
const idleMs = 2_500

type Asked = { readonly spec: SkyhookSpec; readonly isPaused?: boolean }
type Edit = (before: Asked) => Asked

const withSpec =
  (change: SkyhookSpec): Edit =>
  ({ spec, ...more }) => ({ ...more, spec: { ...spec, ...change } })
const withPackage =
  (name: string, change: Partial<PackageSpec>): Edit =>
  ({ spec, ...more }) => ({
    ...more,
    spec: { ...spec, packages: { ...spec.packages, [name]: { ...spec.packages?.[name], ...change } as PackageSpec } },
  })
const withoutPackage =
  (name: string): Edit =>
  ({ spec, ...more }) => {
    const { [name]: _removed, ...packages } = spec.packages ?? {}
    return { ...more, spec: { ...spec, packages } }
  }
const all =
  (...edits: readonly Edit[]): Edit =>
  (before) =>
    edits.reduce((asked, edit) => edit(asked), before)

const service = { type: 'service', services: ['foobar'] } as const

/** Each begins where the one before ended. */
const edits = (image: string, env: NonNullable<PackageSpec['env']>): readonly (readonly [what: string, Edit])[] => {
  const anew = (more: Partial<PackageSpec> = {}): Partial<PackageSpec> => ({ version: '1.0.0', image, env, ...more })
  return [
    [
      'two packages, one with an interrupt',
      all(withPackage('pa', anew()), withPackage('pb', anew({ interrupt: service }))),
    ],
    ['nothing', (before) => before],
    ['configuration of one without interrupt', withPackage('pa', { configMap: { x: '1' } })],
    ['configuration of one with interrupt', withPackage('pb', { configMap: { x: '1' } })],
    ['a later version', withPackage('pa', { version: '1.1.0' })],
    ['a later version of one with interrupt', withPackage('pb', { version: '2.0.0' })],
    ['an earlier version', withPackage('pa', { version: '1.0.0' })],
    ['a package more, after another', withPackage('pc', anew({ dependsOn: { pa: '>=1.0.0' } }))],
    ['variables', withPackage('pc', { env: [...env, { name: 'E', value: '2' }] })],
    [
      'an interrupt for a key that changes',
      withPackage('pa', { configInterrupts: { x: service }, configMap: { x: '2' } }),
    ],
    ['a key that no interrupt names', withPackage('pa', { configMap: { x: '2', y: '1' } })],
    ['another interrupt alone', withPackage('pb', { interrupt: { type: 'reboot' } })],
    ['an earlier version of one that reboots', withPackage('pb', { version: '1.1.0' })],
    [
      'a budget of 0, and a version',
      all(withSpec({ interruptionBudget: { count: 0 } }), withPackage('pa', { version: '1.1.0' })),
    ],
    ['the budget again', withSpec({ interruptionBudget: { count: 1 } })],
    [
      'a pause, and a version',
      all(withPackage('pc', { version: '1.1.0' }), (before) => ({ ...before, isPaused: true })),
    ],
    ['its end', (before) => ({ ...before, isPaused: false })],
    ['a package removed without uninstall', withoutPackage('pc')],
    ['uninstall asked for', withPackage('pb', { uninstall: { enabled: true, apply: true } })],
    [
      'several at once, one after another',
      all(
        withSpec({ serial: true }),
        withPackage('pa', { version: '2.0.0' }),
        withPackage('pd', anew({ interrupt: service })),
      ),
    ],
    ['another image', withPackage('pa', { image: `${image}-again` })],
  ]
}

test('a host does of each edit what its plan foretold', { timeout: 900_000 }, async ({ onTestFinished }) => {
  const name = await claimNodes(cluster, onTestFinished, 'planned', node)
  const host = cluster.host(node)
  const image = `${cluster.registry}/test/planned`
  for (const repository of ['test/planned', 'test/planned-again'])
    for (const version of versions)
      await cluster.sandbox.must(['push', join(fixturePackages, 'journal'), `${repository}:${version}`])
  await recordStarts(host, name)
  onTestFinished(async () => await forgetStarts(host))
  await cluster.history.eventually('its agent is Ready', (view) => hasReadyAgent(view, node))

  const wrong: unknown[] = []
  let asked: Asked = { spec: { interruptionBudget: { count: 1 } } }
  let isNew = true
  const env = [{ name: 'JOURNAL_FILE', value: journalOf(name) }]
  for (const [what, edit] of edits(image, env)) {
    asked = edit(asked)
    const object = { ...manifest(name, asked.spec), metadata: { name, annotations: annotationsOf(asked) } }
    if (isNew) await cluster.apply(manifest(name, { ...asked.spec, packages: {} }), node)
    const foretold = await foretoldOf(name, object)
    const record = await recordOf(name, host)
    await cluster.sandbox.kubectl(['apply', '-f', '-'], JSON.stringify(object))
    await ended(name, foretold.length > 0)
    const done = await record()
    const order = asked.spec.serial === true ? 'serial' : 'side by side'
    const why = differenceOf(foretold, done, order)
    if (why !== undefined) wrong.push({ what, why, foretold: foretold.map(deedText), done: done.map(deedText) })
    isNew = false
  }
  expect(wrong).toEqual([])
})

const annotationsOf = ({ isPaused = false }: Asked): Record<string, string> => (isPaused ? { [pauseKey]: 'true' } : {})

/** Whose interrupt it is the host does not show. */
const asSeen = (deeds: readonly Deed[]): readonly Deed[] =>
  deeds.map((deed) => (deed.deed === 'interrupt' ? { ...deed, packages: [] } : deed))

async function foretoldOf(name: string, object: Manifest): Promise<readonly Deed[]> {
  const tool = commandLine({ client: cluster.api, clock: systemClock })
  const readFile = async (): Promise<string> => await Promise.resolve(JSON.stringify(object))
  const { code, stdout, stderr } = await tool.run('plan -n skyhook -f edit.json -o json', { readFile })
  expect({ code, stderr, refused: code === 0 ? '' : stdout }).toEqual({ code: 0, stderr: '', refused: '' })
  type Group = {
    readonly nodes: readonly string[]
    readonly mayStart: boolean
    readonly steps: readonly RehearsedStep[]
  }
  const { items } = JSON.parse(stdout) as { items: { skyhook: string; groups: readonly Group[] | null }[] }
  const group = items.find(({ skyhook }) => skyhook === name)?.groups?.find(({ nodes }) => nodes.includes(node))
  if (group === undefined) throw new Error(`the plan does not say what ${node} does: ${stdout}`)
  return group.mayStart ? asSeen(foretoldDeeds(group.steps)) : []
}

/** The agent has done what it will do of the newest spec, by what the Skyhook says of that generation. */
async function ended(name: string, isWork: boolean): Promise<void> {
  const { metadata } = await cluster.api.json<Skyhook>('GET', `${skyhooksPath}/${name}`)
  const isComplete = ({ skyhooks }: View): boolean => {
    const { observedGeneration, status } = skyhooks.get(name)?.status ?? {}
    return observedGeneration === metadata.generation && status === 'complete'
  }
  if (isWork) await cluster.history.eventually('it is complete', isComplete, completeMs)
  await sleep(idleMs)
}

/** What is done from now on, in the order of the host's file; cordons have no place in it. */
async function recordOf(name: string, host: Host): Promise<() => Promise<readonly Deed[]>> {
  const cordons = async (): Promise<number> => uncordonedStates(await serviceStates(cluster.history, node)).length
  const before = { lines: (await host.lines(journalOf(name))).length, cordons: await cordons() }
  const boot = await host.bootId()
  return async () => {
    const lines = (await host.lines(journalOf(name))).slice(before.lines)
    const drains = (await cordons()) - before.cordons
    return [...deedsOf(lines, boot), ...Array.from({ length: drains }, (): Deed => ({ deed: 'drain' }))]
  }
}

function deedsOf(lines: readonly string[], bootId: string): readonly Deed[] {
  let boot = bootId.replaceAll('-', '')
  return lines.flatMap((line): readonly Deed[] => {
    const [, who = '', first = '', version = '', stage = ''] = line.split(' ')
    if (who === 'starts') {
      const isReboot = first !== boot
      boot = first
      return [{ deed: 'interrupt', what: isReboot ? 'reboot' : 'service foobar', packages: [] }]
    }
    return stage.endsWith('-check') ? [] : [{ deed: 'stage', package: first, version, stage }]
  })
}

const dropIn = '/etc/systemd/system/foobar.service.d'

/** Each start of the service writes a line with the host's boot to the file of the steps. */
async function recordStarts(host: Host, name: string): Promise<void> {
  const line = `ExecStartPre=/bin/sh -c 'echo "$(date +%%s.%%N) starts %b" >>${journalOf(name)}'`
  await host.exec('mkdir', '-p', dropIn)
  await host.write(`${dropIn}/record.conf`, `[Service]\n${line}\n`)
  await host.exec('systemctl', 'daemon-reload')
}

async function forgetStarts(host: Host): Promise<void> {
  await host.exec('rm', '-r', dropIn)
  await host.exec('systemctl', 'daemon-reload')
}
