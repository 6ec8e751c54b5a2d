import { metadataOnlyAccept, metadataOnlyListAccept } from '../../../src/kube/objects.ts'
import { ofName, type Step, watched } from './semantics-step.ts'

const strategic = 'application/strategic-merge-patch+json'
const merge = 'application/merge-patch+json'
const nodes = '/api/v1/nodes'
const node = (metadata: object, rest: object = {}): object => ({ apiVersion: 'v1', kind: 'Node', metadata, ...rest })
const condition = (type: string, status: string, reason: string): object => ({
  type,
  status,
  reason,
  message: 'as it is',
  lastHeartbeatTime: null,
  lastTransitionTime: null,
})

export const semanticsOfNodes: readonly Step[] = [
  { title: 'Nodes are listed', request: `GET ${nodes}`, expected: '200', save: 'nodes' },
  {
    title: 'a Node registers with a status',
    request: `POST ${nodes}`,
    body: node(
      { name: 'n1', labels: { pool: 'gpu' } },
      { status: { conditions: [condition('Ready', 'True', 'KubeletReady')], phase: 'Running' } },
    ),
    expected: '201',
    save: 'n1',
  },
  { title: 'a second Node registers', request: `POST ${nodes}`, body: node({ name: 'n2' }), expected: '201' },
  {
    title: 'one patch of the status writes annotations, labels and conditions',
    request: `PATCH ${nodes}/n1/status`,
    contentType: strategic,
    accept: metadataOnlyAccept,
    body: {
      metadata: {
        resourceVersion: '{{n1.metadata.resourceVersion}}',
        annotations: { state: 'x' },
        labels: { status: 'ok' },
      },
      status: { conditions: [condition('Ours', 'False', 'Waiting'), condition('Ready', 'False', 'KubeletNotReady')] },
      spec: { unschedulable: true },
    },
    expected: '200',
    save: 'n1b',
  },
  { title: 'the Node is read afterwards', request: `GET ${nodes}/n1`, expected: '200' },
  {
    title: 'a patch of the status of an older version is a conflict',
    request: `PATCH ${nodes}/n1/status`,
    contentType: strategic,
    body: { metadata: { resourceVersion: '{{n1.metadata.resourceVersion}}', annotations: { state: 'y' } } },
    expected: '409 Conflict',
  },
  {
    title: 'a patch of the status removes a condition by its type',
    request: `PATCH ${nodes}/n1/status`,
    contentType: strategic,
    body: {
      metadata: { annotations: { state: null, none: null } },
      status: { conditions: [{ $patch: 'delete', type: 'Ours' }] },
    },
    expected: '200',
  },
  {
    title: 'a cordon sets spec, taints and annotations and cannot touch the status',
    request: `PATCH ${nodes}/n1`,
    contentType: strategic,
    body: {
      metadata: { annotations: { cordoned: 'true' } },
      spec: { unschedulable: true, taints: [{ key: 'ours', effect: 'NoSchedule', value: 'x' }] },
      status: { conditions: [condition('Other', 'True', 'Sneaked')] },
    },
    expected: '200',
  },
  {
    title: 'an uncordon removes field, taints and annotation',
    request: `PATCH ${nodes}/n1`,
    contentType: strategic,
    body: { metadata: { annotations: { cordoned: null } }, spec: { unschedulable: false, taints: [] } },
    expected: '200',
    save: 'n1c',
  },
  {
    title: 'a patch without a change keeps the resourceVersion',
    request: `PATCH ${nodes}/n1`,
    contentType: strategic,
    accept: metadataOnlyAccept,
    body: { metadata: { labels: { status: 'ok' } }, spec: { unschedulable: false } },
    expected: '200',
  },
  {
    title: 'a merge patch replaces conditions as a whole',
    request: `PATCH ${nodes}/n1/status`,
    contentType: merge,
    body: { status: { conditions: [condition('Only', 'True', 'Merged')] } },
    expected: '200',
  },
  {
    title: 'conditions are set on a Node that has none',
    request: `PATCH ${nodes}/n2/status`,
    contentType: strategic,
    body: { status: { conditions: ['A', 'B', 'C', 'D'].map((type) => condition(type, 'True', 'Set')) } },
    expected: '200',
  },
  {
    title: 'a patch of some conditions keeps the real order of all',
    request: `PATCH ${nodes}/n2/status`,
    contentType: strategic,
    body: {
      status: {
        conditions: [
          condition('E', 'True', 'New'),
          condition('C', 'False', 'Changed'),
          { $patch: 'delete', type: 'B' },
          condition('F', 'True', 'New'),
        ],
      },
    },
    expected: '200',
  },
  {
    title: 'a PUT of a Node needs no resourceVersion',
    request: `PUT ${nodes}/n2`,
    body: node({ name: 'n2', labels: { pool: 'cpu' } }, { spec: { providerID: 'p' } }),
    expected: '200',
  },
  {
    title: 'a PUT of a Node that does not exist is not found',
    request: `PUT ${nodes}/n3`,
    body: node({ name: 'n3' }),
    expected: '404 NotFound',
  },
  {
    title: 'Nodes are listed by metadata, in pages',
    request: `GET ${nodes}?limit=1`,
    accept: metadataOnlyListAccept,
    expected: '200',
    save: 'page',
  },
  {
    title: 'the next page shows the same version',
    request: `GET ${nodes}?limit=1&continue={{page.metadata.continue}}`,
    accept: metadataOnlyListAccept,
    expected: '200',
  },
  {
    title: 'a limit does not cut a list from the cache',
    request: `GET ${nodes}?limit=1&resourceVersion=0`,
    accept: metadataOnlyListAccept,
    expected: '200',
  },
  {
    title: 'a continue token that is none is refused',
    request: `GET ${nodes}?limit=1&continue=nonsense`,
    expected: '400 BadRequest',
  },
  { title: 'a Node is read by metadata', request: `GET ${nodes}/n1`, accept: metadataOnlyAccept, expected: '200' },
  {
    title: 'a Node with a finalizer is created',
    request: `POST ${nodes}`,
    body: node({ name: 'held', finalizers: ['example.com/hold'] }),
    expected: '201',
  },
  { title: 'its deletion waits for the finalizer', request: `DELETE ${nodes}/held`, expected: '200', save: 'held' },
  { title: 'a second deletion changes nothing', request: `DELETE ${nodes}/held`, expected: '200' },
  {
    title: 'a finalizer cannot be added during the deletion',
    request: `PATCH ${nodes}/held`,
    contentType: merge,
    body: { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } },
    expected: '422 Invalid',
  },
  {
    title: 'the removal of the last finalizer ends the deletion',
    request: `PATCH ${nodes}/held`,
    contentType: merge,
    body: { metadata: { finalizers: null } },
    expected: '200',
  },
  { title: 'the Node is gone afterwards', request: `GET ${nodes}/held`, expected: '404 NotFound' },
  {
    title: 'annotations of more than 256 KiB together are refused',
    request: `PATCH ${nodes}/n2/status`,
    contentType: strategic,
    body: { metadata: { annotations: { big: '\u00E4'.repeat(131_071) } } },
    expected: '422 Invalid',
  },
  {
    title: 'they are refused beside a change of the spec as well',
    request: `PATCH ${nodes}/n2`,
    contentType: strategic,
    body: { metadata: { annotations: { big: '\u00E4'.repeat(131_071) } } },
    expected: '422 Invalid',
  },
  { title: 'a Node is deleted', request: `DELETE ${nodes}/n2`, expected: '200' },
  {
    title: 'a page shows its version also after a deletion',
    request: `GET ${nodes}?limit=1&continue={{page.metadata.continue}}`,
    accept: metadataOnlyListAccept,
    expected: '200',
  },
  {
    title: 'a watch of Nodes repeats what has happened',
    request: `WATCH ${nodes}?${watched}&resourceVersion={{nodes.metadata.resourceVersion}}`,
    expected: 'AAMMMMMMMMAMDD',
  },
  {
    title: 'a watch of Nodes by metadata has nothing else',
    request: `WATCH ${nodes}?${watched}&${ofName('n1')}&resourceVersion={{n1.metadata.resourceVersion}}`,
    accept: metadataOnlyAccept,
    expected: 'MMMMM',
  },
]
