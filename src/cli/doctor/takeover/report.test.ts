/** What doctor says about recorded moments of the operator. `vitest -u` writes the files again. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { momentNames, readMoment } from '../../../../test/kit/takeover/moments.ts'
import { factsOf, takeoverFindings, withEndedPods } from '../../../../test/kit/takeover/takeover-facts.ts'
import { cordonedBeforeKey, journalKey, nodeStateKey, statusKey } from '../../../schemas/annotations.ts'
import { sha256Hex } from '../../../schemas/canonical-json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { completionHash } from '../../../stages/model/package-inputs.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import { type Check, reportText } from '../finding.ts'
import type { OperatorSkyhook, TakeoverFacts } from './facts.ts'
import { takeoverReport } from './report.ts'

const idsOf = (facts: TakeoverFacts): readonly string[] =>
  takeoverReport(facts).flatMap(({ findings }) => findings.map(({ id }) => id))

test.each(momentNames)('the report of %s equals its golden file', async (name) => {
  const text = reportText(takeoverReport(factsOf(readMoment(name))))
  await expect(text).toMatchFileSnapshot(join(import.meta.dirname, 'goldens', `${name}.txt`))
})

test('all findings that no other test here is about are found at some moment', () => {
  const found = new Set(momentNames.flatMap((name) => idsOf(factsOf(readMoment(name)))))
  expect(takeoverFindings.filter((id) => !found.has(id))).toEqual([
    'journal-outdated',
    'nodewright-served',
    'nodewright-duplicate',
    'nodewright-state',
    'nodewright-job',
    'operator-running',
    'operator-webhook',
    'operator-release',
  ])
})

test('nothing blocks a takeover from a cluster where all is complete', () => {
  for (const name of ['01-idle-complete', '09b-runtime-required-complete', '15b-deployment-policy-complete'])
    expect(idsOf(factsOf(readMoment(name)))).toEqual([])
})

const complete = factsOf(readMoment('01-idle-complete'))

test('a running operator and its webhooks block it, with the command that ends each', () => {
  const running: TakeoverFacts = {
    ...complete,
    deployments: known([{ namespace: 'ops', name: 'manager', replicas: 2 }]),
    webhooks: known([
      { kind: 'MutatingWebhookConfiguration', name: 'mutating', isAsked: true, unanswered: known([]) },
      {
        kind: 'ValidatingWebhookConfiguration',
        name: 'silent',
        isAsked: false,
        unanswered: known(['ops/webhook-service']),
      },
      { kind: 'ValidatingWebhookConfiguration', name: 'answered', isAsked: false, unanswered: known([]) },
    ]),
    definitions: known([{ name: 'skyhooks.skyhook.nvidia.com', release: 'ops/operator', isGone: false }]),
  }
  const findings = takeoverReport(running).flatMap((check) => check.findings)
  expect(findings.map(({ id, severity, command }) => [id, severity, command])).toEqual([
    ['operator-running', 'error', 'kubectl -n ops scale deployment manager --replicas=0'],
    ['operator-webhook', 'error', 'kubectl delete mutatingwebhookconfiguration mutating'],
    ['operator-webhook', 'error', 'kubectl delete validatingwebhookconfiguration silent'],
    ['operator-release', 'warning', 'kubectl -n ops delete secret -l owner=helm,name=operator'],
  ])
})

const agents = (release: string | undefined): TakeoverFacts['agents'] =>
  known([{ namespace: 'skyhook', name: 'skyhookd', release, ignoresNodeWright: known(false) }])

test.each<[string, Partial<TakeoverFacts>, readonly string[], Check['verdict']]>([
  ['of a release that helm knows', {}, ['operator-release'], 'warning'],
  ['of the release of the agents', { agents: agents('ops/release') }, [], 'ok'],
  [
    'of another release than that of the agents',
    { agents: agents('skyhook/skyhookd') },
    ['operator-release'],
    'warning',
  ],
  ['beside agents without a release', { agents: agents(undefined) }, ['operator-release'], 'warning'],
  ['beside agents that may not be seen', { agents: unknown('you may not read it') }, [], 'unknown'],
])('a definition %s', (_, edit, ids, verdict) => {
  const definitions = known([{ name: 'skyhooks.skyhook.nvidia.com', release: 'ops/release', isGone: false }])
  const found = takeoverReport({ ...complete, definitions, ...edit }).find(({ check }) => check === 'release')
  expect([found?.findings.map(({ id }) => id), found?.verdict]).toEqual([ids, verdict])
})

test('a definition that an uninstalled release has left is not a finding', () => {
  const definitions = known([{ name: 'skyhooks.skyhook.nvidia.com', release: 'ops/release', isGone: true }])
  expect(idsOf({ ...complete, definitions })).toEqual([])
})

/** The recorded moment as agents that completed the Skyhook leave it. */
function afterAgents(edit: (skyhook: OperatorSkyhook) => OperatorSkyhook, written: object = {}): TakeoverFacts {
  const [skyhook] = complete.skyhooks.known ? complete.skyhooks.value : []
  if (skyhook === undefined) throw new Error('the moment has no Skyhook')
  const { name } = skyhook.metadata
  const nodes = (complete.nodes.known ? complete.nodes.value : []).map((node): KubernetesNode => {
    const { annotations = {} } = node.metadata
    const sha256 = sha256Hex(annotations[nodeStateKey(name)] ?? '')
    const companion = JSON.stringify({
      v: 1,
      rev: 3,
      sha256,
      nodeUID: node.metadata.uid,
      applied: completionHash(skyhook),
    })
    return {
      ...node,
      metadata: { ...node.metadata, annotations: { ...annotations, [journalKey(name)]: companion, ...written } },
    }
  })
  return { ...complete, nodes: known(nodes), skyhooks: known([edit(skyhook)]) }
}

const withConfig = (skyhook: OperatorSkyhook): OperatorSkyhook => {
  const packages = Object.entries(skyhook.spec.packages ?? {}).map(([name, one]) => [
    name,
    { ...one, configMap: { ...one.configMap, added: 'x' } },
  ])
  return { ...skyhook, spec: { ...skyhook.spec, packages: Object.fromEntries(packages) as never } }
}

test.each<[string, TakeoverFacts, string, readonly string[]]>([
  ['nothing has changed', afterAgents((one) => one), 'tuning stays complete on', []],
  ['its configuration has changed', afterAgents(withConfig), 'tuning has changed since', ['journal-outdated']],
  [
    'the state on its Nodes has changed',
    afterAgents((one) => one, { [nodeStateKey('tuning')]: '{}' }),
    'tuning has changed since',
    ['journal-outdated'],
  ],
  [
    'they had not completed it',
    afterAgents((one) => one, { [statusKey('tuning')]: 'in_progress' }),
    'tuning continues on',
    [],
  ],
  [
    'agents are installed again',
    { ...afterAgents(withConfig), agents: agents(undefined) },
    'tuning has an agent already on',
    [],
  ],
])('agents were there before, and %s', (_, facts, text, ids) => {
  expect([skyhookText(facts), idsOf(facts)]).toEqual([expect.stringContaining(text), ids])
})

test('what agents repeat after another takeover comes with the way to avoid it', () => {
  const [found] = takeoverReport(afterAgents(withConfig)).flatMap(({ findings }) => findings)
  expect(found?.remedy).toContain('/var/lib/skyhook/.agent')
  expect(found?.command).toBe('kubectl annotate node node-1 node-2 node-3 skyhook.nvidia.com/journal_tuning-')
})

test('what may not be read is unknown, and nothing is found in it', () => {
  const hidden = unknown('you may not read it')
  const checks = takeoverReport({
    skyhooks: hidden,
    nodes: hidden,
    pods: hidden,
    configMaps: hidden,
    deployments: hidden,
    webhooks: hidden,
    definitions: hidden,
    agents: hidden,
    nodeWright: { isServed: hidden, objects: hidden, jobs: hidden },
  })
  expect(checks.map(({ verdict }) => verdict)).toEqual(checks.map(() => 'unknown'))
})

/** The recorded moment with one text in place of another, on all objects. */
const edited = (name: string, from: string, to: string): TakeoverFacts =>
  factsOf(
    readMoment(name, (text) => {
      if (!text.includes(from)) throw new Error(`${name} has no ${from}`)
      return text.replaceAll(from, to)
    }),
  )

const skyhookText = (facts: TakeoverFacts): string | undefined =>
  reportText(takeoverReport(facts))
    .split('\n')
    .find((line) => line.startsWith('skyhook'))

test('a package that is configured and not interrupted yet continues, and nothing is repeated', () => {
  const facts = edited(
    '03a-interrupt-package-apply-on-cordoned-node',
    '"stage":"apply","state":"in_progress"',
    '"stage":"config","state":"complete"',
  )
  expect(skyhookText(facts)).toContain('drivers continues on node-1')
  expect(idsOf(withEndedPods(facts))).not.toContain('stage-repeated')
})

test('after a roll of configuration that needs no interrupt, a configured package is complete', () => {
  const facts = edited(
    '04b-erroring-interrupt',
    '"stage":"interrupt","state":"erroring"',
    '"stage":"config","state":"complete"',
  )
  expect(skyhookText(facts)).toContain('continues on node-1')
  const skyhooks = facts.skyhooks.known ? facts.skyhooks.value : []
  const rolled = skyhooks.map((one) => ({ ...one, status: { ...one.status, configUpdates: { driver: ['other'] } } }))
  const text = skyhookText({ ...facts, skyhooks: known(rolled) })
  expect(text).toContain('drivers stays complete on node-1, node-2, node-3')
})

test('a configuration that the operator has not rolled out is left to the agents', () => {
  const { configMaps } = complete
  const older = (configMaps.known ? configMaps.value : []).map((one) =>
    one.package === 'kernel' ? { ...one, data: { ...one.data, 'sysctl.conf': 'older' } } : one,
  )
  const facts = { ...complete, configMaps: known(older) }
  expect([idsOf(facts), skyhookText(facts)]).toEqual([[], expect.stringContaining('tuning continues on node-1')])
})

test('a cordon from before the operator picked the node is an error until the Node records it', () => {
  const facts = withEndedPods(factsOf(readMoment('10-admin-cordon-before-interrupt')))
  const { nodes } = facts
  const found = takeoverReport(facts).flatMap(({ findings }) => findings.filter(({ id }) => id === 'cordon-of-person'))
  expect(found.map(({ objects }) => objects)).toEqual([[{ kind: 'Node', name: 'node-2' }]])
  const marked = (nodes.known ? nodes.value : []).map((node) => ({
    ...node,
    metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [cordonedBeforeKey]: 'true' } },
  }))
  expect(idsOf({ ...facts, nodes: known(marked) })).not.toContain('cordon-of-person')
})
