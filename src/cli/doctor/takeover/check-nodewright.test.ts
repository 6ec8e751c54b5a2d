import { expect, test } from 'vitest'
import { readMoment } from '../../../../test/kit/takeover/moments.ts'
import { factsOf } from '../../../../test/kit/takeover/takeover-facts.ts'
import { ignoreNodeWrightKey, nodeWrightGroup } from '../../../schemas/nodewright.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import type { Finding } from '../finding.ts'
import type { OperatorSkyhook, TakeoverFacts } from './facts.ts'
import { takeoverReport } from './report.ts'

/** One Skyhook `tuning` that is complete on three nodes. */
const complete = factsOf(readMoment('01-idle-complete'))
const ignoring = { [ignoreNodeWrightKey]: 'true' }

const served = (...names: readonly string[]): Partial<TakeoverFacts> => ({
  nodeWright: { isServed: known(true), objects: known(names), jobs: known([]) },
})
const installed = (ignoresNodeWright: boolean): Partial<TakeoverFacts> => ({
  agents: known([
    { namespace: 'skyhook', name: 'skyhookd', release: undefined, ignoresNodeWright: known(ignoresNodeWright) },
  ]),
})
const skyhooks = (edit: (metadata: OperatorSkyhook['metadata']) => object): Partial<TakeoverFacts> => ({
  skyhooks: complete.skyhooks.known
    ? known(complete.skyhooks.value.map((one) => ({ ...one, metadata: { ...one.metadata, ...edit(one.metadata) } })))
    : complete.skyhooks,
})

/** As NodeWright leaves the Nodes: `both` while it may be rolled back, and later without the keys of the operator. */
const nodes = (kind: 'both' | 'pruned'): Partial<TakeoverFacts> => ({
  nodes: known(
    (complete.nodes.known ? complete.nodes.value : []).map((node) => {
      const { annotations = {}, ...metadata } = node.metadata
      const renamed = Object.entries(annotations).map(([key, value]) => [
        key.replace('skyhook.nvidia.com/', `${nodeWrightGroup}/`),
        value,
      ])
      const kept = kind === 'both' ? annotations : {}
      return { ...node, metadata: { ...metadata, annotations: { ...kept, ...Object.fromEntries(renamed) } } }
    }),
  ),
})

type Found = readonly (readonly [Finding['id'], command: string])[]
const found = (facts: Partial<TakeoverFacts>): Found =>
  takeoverReport({ ...complete, ...facts }).flatMap(({ findings }) =>
    findings.map(({ id, command = '' }) => [id, command] as const),
  )

const annotate = (which: string): string => `kubectl annotate skyhook ${which} ${ignoreNodeWrightKey}=true`
const deleteDefinitions =
  'kubectl delete customresourcedefinition nodewrights.nodewright.nvidia.com ' +
  'deploymentpolicies.nodewright.nvidia.com --ignore-not-found'
const install = 'helm upgrade --install skyhookd skyhookd.tgz -n skyhook --set ignoreNodeWright=true'

test.each<[string, Partial<TakeoverFacts>, Found]>([
  ['NodeWright never ran', {}, []],
  ['its definition is served', served(), [['nodewright-served', deleteDefinitions]]],
  ['it has objects of other names', served('other'), [['nodewright-served', annotate('--all')]]],
  [
    'it has objects, and there is no Skyhook',
    { ...served('other'), skyhooks: known([]), nodes: known([]) },
    [['nodewright-served', install]],
  ],
  [
    'a Skyhook has a duplicate',
    { ...served('tuning'), ...nodes('both') },
    [
      ['nodewright-served', annotate('--all')],
      ['nodewright-duplicate', annotate('tuning')],
      ['nodewright-state', annotate('tuning')],
    ],
  ],
  [
    'a Skyhook was made from its object',
    skyhooks(() => ({ annotations: { [`${nodeWrightGroup}/mirrored-from`]: 'tuning' } })),
    [['nodewright-duplicate', annotate('tuning')]],
  ],
  ['its state is on Nodes beside that of the Skyhook', nodes('both'), [['nodewright-state', annotate('tuning')]]],
  ['its state alone is on Nodes', nodes('pruned'), [['nodewright-state', annotate('tuning')]]],
  [
    'its state alone is on Nodes of a Skyhook for which it does not count',
    { ...nodes('pruned'), ...skyhooks(() => ({ annotations: ignoring })) },
    [],
  ],
  [
    'no Skyhook is without the annotation',
    { ...served('tuning'), ...nodes('pruned'), ...skyhooks(() => ({ annotations: ignoring })) },
    [],
  ],
  ['the agents are told to ignore it', { ...served('tuning'), ...nodes('pruned'), ...installed(true) }, []],
  [
    'the agents are installed and not configured to ignore it',
    { ...served('tuning'), ...nodes('pruned'), ...installed(false) },
    [
      ['nodewright-served', annotate('--all')],
      ['nodewright-duplicate', annotate('tuning')],
      ['nodewright-state', annotate('tuning')],
    ],
  ],
])('doctor prints the command to resolve it when %s', (_, facts, expected) => {
  expect(found(facts)).toEqual(expected)
})

test('a definition whose objects may not be listed is an error, and is not advised to be deleted', () => {
  const hidden = unknown('you may not read NodeWrights')
  const facts = { nodeWright: { isServed: known(true), objects: hidden, jobs: known([]) } }
  expect(found(facts)).toEqual([['nodewright-served', annotate('--all')]])
})

test('a Job that has not ended blocks a takeover, also where NodeWright is ignored', () => {
  const jobs = known([{ namespace: 'ops', name: 'tuning-apply-node-1', node: 'node-1', rollout: 'tuning' }])
  const facts = { ...installed(true), nodeWright: { isServed: known(false), objects: known([]), jobs } }
  expect(found(facts)).toEqual([
    ['nodewright-job', 'kubectl -n ops delete job tuning-apply-node-1 --cascade=foreground'],
  ])
})

test('a node with state of NodeWright is not reported as not started', () => {
  const texts = takeoverReport({ ...complete, ...nodes('pruned') }).map(({ about }) => about)
  expect(texts).toContain('tuning has state of NodeWright on node-1, node-2, node-3')
})

test('agents whose settings may not be read may ignore NodeWright', () => {
  const hidden = unknown('you may not read ConfigMaps in namespace skyhook')
  const agents = known([{ namespace: 'skyhook', name: 'skyhookd', release: undefined, ignoresNodeWright: hidden }])
  const [check] = takeoverReport({ ...complete, ...served(), agents })
  expect([check?.verdict, check?.unknown]).toEqual(['error', [hidden.why]])
})
