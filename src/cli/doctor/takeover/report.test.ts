/** What doctor says of recorded moments of the operator; `vitest -u` writes the files anew. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { momentNames, readMoment } from '../../../../test/takeover/moments.ts'
import { factsOf, takeoverFindings, withEndedPods } from '../../../../test/takeover/takeover-facts.ts'
import { cordonedBeforeKey } from '../../../schemas/annotations.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import { reportText } from '../report-text.ts'
import type { TakeoverFacts } from './facts.ts'
import { takeoverReport } from './report.ts'

const idsOf = (facts: TakeoverFacts): readonly string[] =>
  takeoverReport(facts).flatMap(({ findings }) => findings.map(({ id }) => id))

test.each(momentNames)('doctor says of %s what its file says', async (name) => {
  const text = reportText(takeoverReport(factsOf(readMoment(name))))
  await expect(text).toMatchFileSnapshot(join(import.meta.dirname, 'goldens', `${name}.txt`))
})

test('all findings that no other test here is about are found at some moment', () => {
  const found = new Set(momentNames.flatMap((name) => idsOf(factsOf(readMoment(name)))))
  expect(takeoverFindings.filter((id) => !found.has(id))).toEqual([
    'operator-running',
    'operator-webhook',
    'operator-release',
  ])
})

test('nothing stands against a takeover from a cluster where all is complete', () => {
  for (const name of ['01-idle-complete', '09b-runtime-required-complete', '15b-deployment-policy-complete'])
    expect(idsOf(factsOf(readMoment(name)))).toEqual([])
})

const complete = factsOf(readMoment('01-idle-complete'))

test('an operator that runs and its webhooks stand against it, with the command that ends each', () => {
  const running: TakeoverFacts = {
    ...complete,
    deployments: known([{ namespace: 'ops', name: 'manager', replicas: 2 }]),
    webhooks: known([{ kind: 'MutatingWebhookConfiguration', name: 'mutating' }]),
    definitions: known([
      { name: 'skyhooks.skyhook.nvidia.com', release: 'ops/operator', isOurs: false },
      { name: 'deploymentpolicies.skyhook.nvidia.com', release: 'skyhook/skyhookd', isOurs: true },
    ]),
  }
  const findings = takeoverReport(running).flatMap((check) => check.findings)
  expect(findings.map(({ id, severity, command }) => [id, severity, command])).toEqual([
    ['operator-running', 'error', 'kubectl -n ops scale deployment manager --replicas=0'],
    ['operator-webhook', 'error', 'kubectl delete mutatingwebhookconfiguration mutating'],
    ['operator-release', 'warning', 'kubectl -n ops delete secret -l owner=helm,name=operator'],
  ])
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

test('a cordon that was there before the operator picked the node is an error until the Node says so', () => {
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
