/** A dashboard of an archive that the real code has made of a simulated fleet. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { type FleetScene, startBlockedScene, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { passUntil } from '../../../test/kit/event-loop.ts'
import { createSeededRandom, createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { ApiError } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { known } from '../../stages/model/snapshot.ts'
import { packBundle } from '../bundle/archive.ts'
import { collectBundle } from '../bundle/collect.ts'
import { openBundle } from '../bundle/open.ts'
import { exitCodes } from '../base/framework/command-error.ts'
import { openFleetSource, inContext, nodeActions } from './fleet-source.ts'
import { withSlots } from './lanes.ts'
import type { OutputPart, PageState, DashboardSource, FleetMoment } from './page-data.ts'
import { pageState } from './audience.ts'

const { signal } = new AbortController()
const literal = 'literal-of-an-environment'

const startRollout = async (): Promise<FleetScene> =>
  await startBlockedScene({
    p0a: {
      version: '1.0.0',
      image: 'registry.test/p0a',
      interrupt: { type: 'reboot' },
      env: [{ name: 'PASSPHRASE', value: literal }],
    },
    p0b: { version: '2.0.0', image: 'registry.test/p0b' },
  })

async function archived(scene: FleetScene, transport: KubeTransport = scene.transport): Promise<DashboardSource> {
  const { clock } = scene.simulation
  const request = { namespace: 'skyhook', clock, signal, nodes: [], documents: new Map<string, unknown>() }
  const folder = temporaryFolder()
  const file = join(folder, 'b.tar.gz')
  await writeFile(file, await packBundle(await collectBundle(transport, request)))
  // hours later
  const later = createVirtualClock(clock.wallMs() + 10_000_000)
  const random = createSeededRandom(1)
  const { index, namespace, ...bundle } = await openBundle(file, { clock: later, random })
  const takenAtMs = bundle.clock.wallMs()
  const of = { isLive: false, file: 'b.tar.gz', takenAtMs, madeBy: index.toolVersion, namespace } as const
  const source = await openFleetSource({ ...bundle, random, identity: { ...of, version: '1' }, signal })
  return { ...source, plan: async (...edit) => await passUntil(later, source.plan(...edit)) }
}

async function live({ simulation: { clock }, transport }: FleetScene): Promise<DashboardSource> {
  const identity = {
    isLive: true,
    context: undefined,
    server: 'https://api.test',
    namespace: 'skyhook',
    user: known('alice'),
    version: '1',
  } as const
  return await openFleetSource({ transport, clock, random: createSeededRandom(1), identity, signal })
}

/** The moments that a source shows, and what ends it. */
function following(source: DashboardSource) {
  const ending = new AbortController()
  const moments: FleetMoment[] = []
  const ended = source.follow((moment) => void moments.push(moment), ending.signal)
  ended.catch(() => undefined)
  onTestFinished(() => ending.abort())
  return { moments, ended, end: (reason: Error) => ending.abort(reason) }
}

/** All that the page draws of the first moment, but whose it is. */
function drawn(source: DashboardSource, skyhook = 's'): Omit<PageState, 'identity'> {
  const [moment] = following(source).moments
  if (moment === undefined) throw new Error('nothing was shown')
  const { fleet } = moment
  const { identity: _, ...shown } = pageState(
    source.identity,
    moment,
    withSlots(new Map(), fleet.slots, fleet.takenAtMs),
    skyhook,
  )
  return shown
}

const edited = (text: string, from: string, to: string): string => {
  if (!text.includes(from)) throw new Error(`there is no ${from} in ${text}`)
  return text.replace(from, to)
}

test('squares, counts, reasons and lanes of an archive are those of the cluster when it was made', async () => {
  const scene = await startRollout()
  const liveSource = await live(scene)
  const source = await archived(scene)
  const shown = drawn(source)
  expect(shown).toEqual(drawn(liveSource))
  expect(shown.rollout).toMatchObject({
    nodes: known([
      { node: 'node1', status: 'in_progress', phase: 'draining' },
      { node: 'node2', status: 'waiting' },
    ]),
    lanes: [{ spans: [{ node: 'node1', toMs: undefined }] }],
  })
})

test('an archive shows one moment, of the time at which it was made, until it is closed', async () => {
  const scene = await startRollout()
  const madeAtMs = scene.simulation.clock.wallMs()
  const source = await archived(scene)
  const { moments, ended, end } = following(source)
  await scene.pass(60_000)
  expect(moments).toMatchObject([
    { fleet: { takenAtMs: madeAtMs }, contactAtMs: madeAtMs, freshness: { state: 'live' } },
  ])
  expect(source.identity).toMatchObject({ isLive: false, file: 'b.tar.gz', takenAtMs: madeAtMs, namespace: 'skyhook' })
  end(new Error('ctrl-C'))
  await expect(ended).rejects.toThrow('ctrl-C')
})

test('a node is explained as of the time of the archive, with what drains and packages there were', async () => {
  const scene = await startRollout()
  const of = { skyhook: 's', node: 'node1' }
  const { actions: _, ...expected } = await (await live(scene)).explain(of, signal)
  const source = await archived(scene)
  await scene.pass(60_000)
  const { actions, ...answer } = await source.explain(of, signal)
  expect(answer).toEqual(expected)
  expect(answer.events).toMatchObject({ unread: [] })
  expect(answer.events.newest.map(({ about, reason }) => `${about} ${reason}`)).toContain('Node SkyhookStarted')
  expect(answer.explanation.verdict).toMatchObject({ cause: 'disruption-budget' })
  const commands = actions.map(({ command }) => command)
  expect(commands).toContain('kubectl skyhook explain s node1 --from b.tar.gz')
  expect(commands).toContain('kubectl skyhook logs s --node node1')
  const waiting = await source.explain({ skyhook: 's', node: 'node2' }, signal)
  expect(waiting.explanation.verdict).toMatchObject({ cause: 'budget-full' })
})

test('a node is answered with its other Skyhooks, each as its own square has it', async () => {
  const TOKEN = { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'absent', key: 'token' } } }
  const unmet = { priority: 900, packages: { p1a: { version: '1.0.0', image: 'registry.test/p0a', env: [TOKEN] } } }
  const elsewhere = { nodeSelectors: { matchLabels: { pool: 'z' } } }
  const scene = startScene({ skyhooks: { s: {}, unmet, left: {}, elsewhere } })
  await scene.until(() => scene.annotation('node1', statusKey('left')) === 'complete', 'the work of left')
  scene.editSkyhook('left', { spec: elsewhere })
  await scene.pass(60_000)
  const source = await archived(scene)
  const { others } = await source.explain({ skyhook: 's', node: 'node1' }, signal)
  expect(others).toEqual([
    { skyhook: 'left', complete: 1, total: 1 },
    { skyhook: 'unmet', status: 'waiting', reason: 'ReferenceMissing', complete: 0, total: 0 },
  ])
  expect(drawn(source, 'unmet').rollout).toMatchObject({
    nodes: { value: [{ node: 'node1', status: 'waiting', reason: 'ReferenceMissing' }, {}] },
  })
})

test('what an archive does not have is said in words', async () => {
  const source = await archived(await startRollout())
  const parts: OutputPart[] = []
  await source.followOutput({ skyhook: 's', node: 'node1' }, (part) => void parts.push(part), signal)
  const note =
    'A support archive has no output of steps. In the cluster: kubectl skyhook logs s --node node1; on the host: ' +
    '/var/log/skyhook/s'
  expect(parts).toEqual([{ note }])
  await expect(source.explain({ skyhook: 's', node: 'gone' }, signal)).rejects.toMatchObject({
    exitCode: exitCodes.notFound,
    message: 'the archive has no Node gone',
  })
  await expect(source.manifest('gone', signal)).rejects.toMatchObject({ exitCode: exitCodes.notFound })
})

test('what the person who made it could not read is unknown, and refused where nothing is left to say', async () => {
  const scene = await startRollout()
  const without = (plural: string): KubeTransport => ({
    ...scene.transport,
    async json(method, path, options) {
      if (path.endsWith(`/${plural}`)) throw new ApiError({ status: 403, reason: 'Forbidden', message: 'you may not' })
      return await scene.transport.json(method, path, options)
    },
  })
  const noLeases = following(await archived(scene, without('leases'))).moments[0]
  expect(noLeases?.fleet.slots).toEqual({
    known: false,
    why: 'when the bundle was made: you may not read Leases in namespace skyhook',
  })
  const noEvents = await (await archived(scene, without('events'))).explain({ skyhook: 's', node: 'node1' }, signal)
  expect(noEvents.events).toEqual({
    newest: [],
    unread: [
      'when the bundle was made: you may not read Events about Nodes',
      'when the bundle was made: you may not read Events about Skyhooks',
    ],
  })
  const why = 'when the bundle was made: you may not read Skyhooks'
  const noSkyhooks = await archived(scene, without('skyhooks'))
  expect(drawn(noSkyhooks).skyhooks).toEqual({ known: false, why })
  const manifest = 'apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: { name: s }\nspec: {}\n'
  for (const asked of [
    noSkyhooks.explain({ skyhook: 's', node: 'node1' }, signal),
    noSkyhooks.manifest('s', signal),
    noSkyhooks.plan(manifest, signal),
  ])
    await expect(asked).rejects.toMatchObject({
      exitCode: exitCodes.refused,
      message: expect.stringContaining(why) as string,
    })
})

test('an edit of the archived spec is planned on the nodes as they were, without an API server', async () => {
  const scene = await startRollout()
  const source = await archived(scene)
  await scene.pass(60_000)
  const manifest = await source.manifest('s', signal)
  expect(manifest).toContain('value: "[left-out]"')
  expect(manifest).not.toContain(literal)
  const same = await source.plan(manifest, signal)
  expect(same).toMatchObject({ isRefused: false })
  expect(same.text).toContain('Skyhook s would not change')
  const update = await source.plan(edited(manifest, 'version: 2.0.0', 'version: 2.1.0'), signal)
  expect(update.isRefused).toBe(false)
  expect(update.text).toContain(
    'the API server was not asked, a support archive has no API server: checked by the rules of this version',
  )
  expect(update.text).toContain('changed spec.packages.p0b.version: "2.0.0" -> "2.1.0"')
  expect(update.text).toMatch(/p0b 2\.1\.0/)
  const added = await source.plan(edited(manifest, 'name: s\n', 'name: another\n'), signal)
  expect(added.text).toContain('Skyhook another would be created')
  const typo = await source.plan(edited(manifest, 'packages:', 'pakages:'), signal)
  expect(typo).toMatchObject({ isRefused: true, text: expect.stringContaining('pakages') as string })
  await expect(source.plan('kind: Pod', signal)).rejects.toMatchObject({ exitCode: exitCodes.usage })
})

test('what a text lacks of the archived spec would be removed, unless it is a default', async () => {
  const source = await archived(await startRollout())
  const manifest = await source.manifest('s', signal)
  const withoutPackage = edited(manifest, / {4}p0b:\n(?: {6}.*\n)+/.exec(manifest)?.[0] ?? 'p0b', '')
  const text = edited(withoutPackage, '  priority: 200\n', '')
  const plan = await source.plan(text, signal)
  expect(plan.text.match(/^.*(?:added|changed|removed) spec.*$/gm)?.map((line) => line.trim())).toEqual([
    expect.stringContaining('removed spec.packages.p0b.image'),
    expect.stringContaining('removed spec.packages.p0b.version'),
  ])
})

test.each([
  ['kubectl skyhook resume s', 'kubectl skyhook resume s --context prod'],
  ['kubectl describe node n | grep -A5 Taints', 'kubectl describe node n --context prod | grep -A5 Taints'],
  ['kubectl get a && kubectl get b', 'kubectl get a --context prod && kubectl get b --context prod'],
  ['systemd-inhibit --list # on the host', 'systemd-inhibit --list # on the host'],
])('the command %s names the cluster that the page shows', (command, expected) => {
  expect(inContext(command, 'prod')).toBe(expected)
  expect(inContext(command, undefined)).toBe(command)
})

test('a name with special characters stays one word of the shell', () => {
  expect(inContext('kubectl get x', "a b'c; rm -rf /")).toBe(`kubectl get x --context 'a b'\\''c; rm -rf /'`)
  for (const { command } of nodeActions('s', 'n$(x)')) expect(command).not.toMatch(/[^']n\$\(x\)/)
})
