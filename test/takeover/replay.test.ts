/**
 * From each recorded moment to completion: whole agents on simulated hosts, under all rules of the fleet. The steps
 * before are those that `kubectl skyhook doctor --takeover` prints for the moment.
 */
import { expect, test } from 'vitest'
import { takeoverReport } from '../../src/cli/doctor/takeover/report.ts'
import { cordonedBeforeKey, disableKey, nodeStateKey, pauseKey, statusKey } from '../../src/schemas/annotations.ts'
import { type PodObject, packagePodOf } from '../../src/cli/doctor/read/read-takeover.ts'
import { apiGroup } from '../../src/schemas/api.ts'
import { isEqual } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { selects } from '../../src/schemas/selectors.ts'
import type { SimObject } from '../kit/api-server/versions.ts'
import type { SimulatedApiServer } from '../kit/api-server/server.ts'
import { invariants } from '../promises/all.ts'
import type { Invariant } from '../promises/promised.ts'
import { runPlan, type RunResult } from '../kit/fleet/run-plan.ts'
import type { WorldView } from '../kit/fleet/world-view.ts'
import { type Moment, momentNames } from '../kit/takeover/moments.ts'
import { type OperatorCluster, operatorWork } from './operator-rules.ts'
import {
  administrator,
  type Administrator,
  hostOf,
  nodeOf,
  operatorEntries,
  operatorLeft,
  type PackageWork,
  simulatedMoment,
} from './simulation.ts'
import { factsOf, withEndedPods } from '../kit/takeover/takeover-facts.ts'

/** When what only a person ends has been waited for long enough. */
const resumedAtMs = 40_000
const podsDeletedAtMs = 20_000

/** Moments that go on only when a person does something, and those that a person had cordoned a node before. */
const people: Readonly<Record<string, (admin: Administrator, world: WorldView) => void>> = {
  '08-paused-and-disabled': resume,
  '08b-paused-after-its-pod-finished': resume,
  '16-blocked-and-ignored': (admin, { clock }) =>
    void clock.startTimer(resumedAtMs, () => admin.patchNode('node-3', { spec: { taints: null } })),
}

function resume(admin: Administrator, { clock, server }: WorldView): void {
  clock.startTimer(resumedAtMs, () => {
    const annotations = { [pauseKey]: null, [disableKey]: null }
    for (const { metadata } of server.objects('skyhooks'))
      admin.patchSkyhook(metadata.name, { metadata: { annotations } })
  })
}

const cordonedByPerson = new Set(['10-admin-cordon-before-interrupt', '10c-admin-cordon-complete-without-interrupt'])

/** As if it were schedulable: the rules see how the administrator cordons it. */
const withoutCordon = (moment: Moment, name: string): Moment => ({
  ...moment,
  nodes: moment.nodes.map((node) => (node.metadata.name === name ? { ...node, spec: {} } : node)),
})

/** Entries that the spec still asks for, by version, and uninstalls that it asks for: what goes on where it was. */
function workThatGoesOn(moment: Moment): readonly PackageWork[] {
  const live = moment.skyhooks.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const versions = new Map(
    live.flatMap(({ metadata, spec }) =>
      Object.entries(spec.packages ?? {}).map(([name, { version }]) => [`${metadata.name}/${name}`, version] as const),
    ),
  )
  return operatorEntries(moment).filter(
    ({ skyhook, package: name, version, stage, state }) =>
      versions.has(`${skyhook}/${name}`) &&
      (stage === 'uninstall' ? state !== 'skipped' : versions.get(`${skyhook}/${name}`) === version),
  )
}

/** The first step that an agent is to run for it; undefined if none is left. */
function firstModeOf({ stage, state, passed }: PackageWork, hasInterrupt: boolean): string | undefined {
  if (stage === 'interrupt') return 'post-interrupt'
  if (state !== 'complete') return stage
  const next = hasInterrupt ? ['config', 'post-interrupt'] : ['config']
  return next.find((each) => !passed.includes(each))
}

/** Config does not where the spec has another configuration than the operator rolled out. */
const stays =
  ({ skyhooks, configMaps }: Moment, one: PackageWork) =>
  (stage: string): boolean => {
    const spec = skyhooks.find(({ metadata }) => metadata.name === one.skyhook)?.spec.packages?.[one.package]
    const rolledOut = configMaps.find(
      ({ metadata }) => metadata.name === `${one.skyhook}-${one.package}-${one.version}`,
    )
    return stage !== 'config' || rolledOut === undefined || isEqual(rolledOut.data, spec?.configMap ?? {})
  }

/** No stage that has passed for the spec, and nothing while its Skyhook is held. */
function leavesAlone(moment: Moment, seen: { readonly steps: string[]; restarts: number }): Invariant {
  const passed = new Set(
    workThatGoesOn(moment).flatMap((one) =>
      one.passed
        .filter(stays(moment, one))
        .flatMap((stage) =>
          [stage, `${stage}-check`].map((mode) => `${one.host} ${one.skyhook}/${one.package} ${mode}`),
        ),
    ),
  )
  return {
    name: 'passed-stays',
    watch: ({ server }, violate) => ({
      on(event) {
        if (event.kind !== 'host') return
        if (event.event.event === 'restartRequested') seen.restarts++
        if (event.event.event !== 'stepStarted') return
        const { skyhook, package: name, mode } = event.event.step
        const step = `${event.host} ${skyhook}/${name} ${mode}`
        seen.steps.push(step)
        if (passed.has(step)) violate(`${mode} of ${name} of ${skyhook} runs again on ${event.host}`)
        const besides = server.objects('pods').filter((pod) => isPackagePodOn(pod, event.host))
        for (const { metadata } of besides)
          violate(`${mode} of ${name} of ${skyhook} starts on ${event.host} beside package pod ${metadata.name}`)
        const { annotations = {} } = server.object('skyhooks', undefined, skyhook)?.metadata ?? {}
        if (annotations[pauseKey] === 'true' || annotations[disableKey] === 'true')
          violate(`${skyhook} is held, and starts ${name} on ${event.host}`)
      },
      checks: () => seen.steps.length,
    }),
  }
}

const isPackagePodOn = (pod: SimObject, host: string): boolean => packagePodOf(pod as PodObject)?.node === nodeOf(host)

/** Carries out what doctor says for the moment, and deletes package pods when agents have waited for it. */
function takeOver(moment: Moment): (admin: Administrator, world: WorldView) => void {
  const checks = takeoverReport(withEndedPods(factsOf(moment)))
  const commands = checks.flatMap(({ findings }) => findings.map(({ command = '' }) => command))
  return (admin, { clock }) => {
    for (const command of commands) {
      const [, node, key, value] = /^kubectl annotate node (\S+) (\S+)=(\S+)$/.exec(command) ?? []
      if (node !== undefined && key !== undefined) admin.annotateNode(node, { [key]: value ?? '' })
      const [, namespace = '', pods = ''] = /^kubectl -n (\S+) delete pod (.+)$/.exec(command) ?? []
      for (const pod of pods.split(' ').filter(Boolean))
        clock.startTimer(podsDeletedAtMs, () => admin.deletePod(namespace, pod))
    }
  }
}

type Replay = {
  readonly result: RunResult
  readonly server: SimulatedApiServer
  readonly steps: readonly string[]
  readonly restarts: number
}

async function replay(
  name: string,
  options: { readonly isPrepared?: boolean; readonly edit?: (recorded: Moment) => Moment } = {},
): Promise<Replay> {
  const { isPrepared = true, edit = (moment: Moment) => moment } = options
  const recorded = edit(simulatedMoment(name))
  const isCordoned = cordonedByPerson.has(name)
  let world: WorldView | undefined
  const seen = { steps: [] as string[], restarts: 0 }
  const prepare = takeOver(recorded)
  const nodes = ['host-1', 'host-2', 'host-3'].map((host) => ({ name: host, isControlPlane: false, pods: [] }))
  const result = await runPlan(
    { seed: 1, nodes, skyhooks: [], actions: [], healsEarly: true },
    {
      invariants: [
        operatorLeft(isCordoned ? withoutCordon(recorded, 'node-2') : recorded, (started) => (world = started)),
        leavesAlone(recorded, seen),
        ...invariants,
        administrator((admin, started) => {
          if (isCordoned) admin.patchNode('node-2', { spec: { unschedulable: true } })
          if (isPrepared) prepare(admin, started)
          people[name]?.(admin, started)
        }),
      ],
    },
  )
  if (world === undefined) throw new Error('there was no world')
  return { result, server: world.server, ...seen }
}

const clusterOf = (server: SimulatedApiServer): OperatorCluster => ({
  skyhooks: server.objects('skyhooks') as unknown as readonly Skyhook[],
  nodes: server.objects('nodes') as unknown as readonly KubernetesNode[],
  configMaps: new Map(
    server.objects('configmaps').map((one) => [one.metadata.name, one['data'] as Readonly<Record<string, string>>]),
  ),
})

const isReady = ({ status }: Skyhook): boolean =>
  ((status?.['conditions'] ?? []) as readonly { readonly type: string; readonly status: string }[]).some(
    (one) => one.type === 'Ready' && one.status === 'True',
  )

/** What the operator reads and writes there, but for its version, which the agents name as theirs. */
function seenByOperator({ metadata, status }: KubernetesNode, skyhook: string): object {
  const { annotations = {}, labels = {} } = metadata
  const own = (status?.conditions ?? []).filter(({ type }) => type.startsWith(`${apiGroup}/`))
  return {
    state: JSON.parse(annotations[nodeStateKey(skyhook)] ?? '{}') as unknown,
    status: [annotations[statusKey(skyhook)], labels[statusKey(skyhook)]],
    conditions: own.map(({ type, status: value, reason, message }) => [type, value, reason, message].join(' ')).sort(),
  }
}

/** The operator's own end of what it was doing, and the Skyhook that both have completed. */
const endings: Readonly<Record<string, readonly [moment: string, skyhook: string]>> = {
  '01-idle-complete': ['01-idle-complete', 'tuning'],
  '02-apply-running': ['01-idle-complete', 'tuning'],
  '03b-post-interrupt-running': ['10b-admin-cordon-after-complete', 'drivers'],
  '09-runtime-required-taint': ['09b-runtime-required-complete', 'tuning'],
  '15-deployment-policy-batch': ['15b-deployment-policy-complete', 'tuning'],
}

test.each(momentNames)(
  'agents complete what the operator left at %s, and it would find nothing to do',
  async (name) => {
    const { result, server, steps, restarts } = await replay(name)
    expect(result.violation).toBeUndefined()
    const cluster = clusterOf(server)
    expect(cluster.skyhooks.filter((skyhook) => !isReady(skyhook)).map(({ metadata }) => metadata.name)).toEqual([])
    expect(cluster.skyhooks.flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([])
    expect(cluster.nodes.filter(({ spec }) => spec?.unschedulable === true)).toEqual([])
    expect(steps).toEqual([...new Set(steps)]) // each step once
    const recorded = simulatedMoment(name)
    const interrupting = recorded.skyhooks.filter(({ spec }) => spec.packages?.['driver'] !== undefined)
    const isPastInterrupt = (node: string): boolean =>
      operatorEntries(recorded).some(
        ({ host, package: name, passed }) => host === hostOf(node) && name === 'driver' && passed.includes('interrupt'),
      )
    const expected = interrupting
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .flatMap(({ spec }) =>
        recorded.nodes.filter(
          ({ metadata }) => selects(spec.nodeSelectors, metadata.labels ?? {}) && !isPastInterrupt(metadata.name),
        ),
      )
    expect(restarts).toBe(expected.length) // once where it was not made, nowhere else
    for (const one of workThatGoesOn(recorded)) {
      const of = `${one.host} ${one.skyhook}/${one.package} `
      const spec = recorded.skyhooks.find(({ metadata }) => metadata.name === one.skyhook)?.spec
      const mode = firstModeOf(one, spec?.packages?.[one.package]?.interrupt !== undefined)
      expect(steps.find((step) => step.startsWith(of))).toBe(mode === undefined ? undefined : of + mode)
    }
    expect(operatorWork(cluster)).toEqual([])
    const [after, skyhook = ''] = endings[name] ?? []
    for (const node of after === undefined ? [] : simulatedMoment(after).nodes) {
      const left = cluster.nodes.find(({ metadata }) => metadata.name === node.metadata.name)
      expect(left && seenByOperator(left, skyhook)).toEqual(seenByOperator(node, skyhook))
    }
  },
)

test('the operator of the rules has work at every moment that is not complete', () => {
  const idle = momentNames.filter((name) => {
    const { skyhooks, nodes, configMaps } = simulatedMoment(name)
    const data = new Map(configMaps.map((one) => [one.metadata.name, one.data]))
    return operatorWork({ skyhooks, nodes, configMaps: data }).length === 0
  })
  expect(idle).toEqual([
    '01-idle-complete',
    '09b-runtime-required-complete',
    '10b-admin-cordon-after-complete',
    '10c-admin-cordon-complete-without-interrupt',
    '13-after-normal-deletion',
    '14-deleted-during-interrupt',
    '15b-deployment-policy-complete',
  ])
})

test("a cordon of an administrator that the operator's mark covers is lost unless the Node says whose it is", async () => {
  const name = '10-admin-cordon-before-interrupt'
  const unprepared = await replay(name, { isPrepared: false })
  expect(unprepared.result.violation?.message).toMatch(/takes off the cordon that an administrator set on node-2/)
  const commands = takeoverReport(factsOf(simulatedMoment(name))).flatMap(({ findings }) =>
    findings.flatMap(({ id, command }) => (id === 'cordon-of-person' ? [command] : [])),
  )
  expect(commands).toEqual([`kubectl annotate node node-2 ${cordonedBeforeKey}=true`])
})

test('a configuration that the operator had not rolled out is rolled out by the agents, and nothing else', async () => {
  const edit = (recorded: Moment): Moment => ({
    ...recorded,
    configMaps: recorded.configMaps.map((one) =>
      one.metadata.name === 'tuning-kernel-1.0.0' ? { ...one, data: { ...one.data, 'sysctl.conf': 'older' } } : one,
    ),
  })
  const { result, steps, restarts } = await replay('01-idle-complete', { edit })
  expect([result.violation, restarts]).toEqual([undefined, 0])
  const expected = ['host-1', 'host-2', 'host-3'].flatMap((host) =>
    ['config', 'config-check'].map((mode) => `${host} tuning/kernel ${mode}`),
  )
  expect(steps.toSorted()).toEqual(expected)
})
