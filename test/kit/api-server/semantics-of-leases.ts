import type { Step } from './semantics-step.ts'

const merge = 'application/merge-patch+json'
const leases = '/apis/coordination.k8s.io/v1/namespaces/fleet/leases'
const lease = (metadata: object, spec: object = {}): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata,
  spec,
})

export const semanticsOfLeases: readonly Step[] = [
  {
    title: 'a namespace is created',
    request: 'POST /api/v1/namespaces',
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fleet' } },
    expected: '201',
  },
  { title: 'an empty collection is listed', request: `GET ${leases}`, expected: '200', save: 'start' },
  { title: 'an object that does not exist is not found', request: `GET ${leases}/a`, expected: '404 NotFound' },
  {
    title: 'a resource that does not exist is not found',
    request: 'GET /apis/example.com/v1/widgets',
    expected: '404',
  },
  {
    title: 'a Lease is created',
    request: `POST ${leases}`,
    body: lease({ name: 'a', labels: { team: 'one', kind: 'slot' } }, { holderIdentity: 'n1', leaseTransitions: 0 }),
    expected: '201',
    save: 'a',
  },
  { title: 'it is read', request: `GET ${leases}/a`, expected: '200' },
  {
    title: 'it is created a second time',
    request: `POST ${leases}`,
    body: lease({ name: 'a' }),
    expected: '409 AlreadyExists',
  },
  {
    title: 'a Lease is created with a uid, a generation and a time of its own',
    request: `POST ${leases}`,
    body: lease({ name: 'b', uid: 'x', generation: 7, creationTimestamp: '2001-01-01T00:00:00Z', labels: {} }),
    expected: '201',
    save: 'b',
  },
  {
    title: 'a Lease is created with a resourceVersion',
    request: `POST ${leases}`,
    body: lease({ name: 'c', resourceVersion: '5' }),
    expected: '500',
  },
  {
    title: 'a Lease is created without a name',
    request: `POST ${leases}`,
    body: lease({}),
    expected: '422 Invalid',
  },
  {
    title: 'a Lease is created in another namespace than that of the path',
    request: `POST ${leases}`,
    body: lease({ name: 'c', namespace: 'default' }),
    expected: '400 BadRequest',
  },
  {
    title: 'a Lease is created in a namespace that does not exist',
    request: 'POST /apis/coordination.k8s.io/v1/namespaces/nowhere/leases',
    body: lease({ name: 'c' }),
    expected: '404 NotFound',
  },
  {
    title: 'a PUT changes exactly the version that was read',
    request: `PUT ${leases}/a`,
    body: lease(
      { name: 'a', uid: '{{a.metadata.uid}}', resourceVersion: '{{a.metadata.resourceVersion}}' },
      { holderIdentity: '' },
    ),
    expected: '200',
    save: 'a2',
  },
  {
    title: 'a PUT without a change keeps the resourceVersion',
    request: `PUT ${leases}/a`,
    body: lease({ name: 'a', resourceVersion: '{{a2.metadata.resourceVersion}}' }, { holderIdentity: '' }),
    expected: '200',
  },
  {
    title: 'a PUT of an older version is a conflict',
    request: `PUT ${leases}/a`,
    body: lease({ name: 'a', resourceVersion: '{{a.metadata.resourceVersion}}' }, { holderIdentity: 'n2' }),
    expected: '409 Conflict',
  },
  {
    title: 'a PUT with the uid of another object is a conflict',
    request: `PUT ${leases}/a`,
    body: lease({ name: 'a', uid: '{{b.metadata.uid}}', resourceVersion: '{{a2.metadata.resourceVersion}}' }),
    expected: '409 Conflict',
  },
  {
    title: 'a PUT without a resourceVersion is refused',
    request: `PUT ${leases}/a`,
    body: lease({ name: 'a' }, { holderIdentity: 'n3' }),
    expected: '422 Invalid',
  },
  {
    title: 'a PUT with another name than that of the path is refused',
    request: `PUT ${leases}/a`,
    body: lease({ name: 'b' }),
    expected: '400 BadRequest',
  },
  {
    title: 'a PUT of a Lease that does not exist creates it',
    request: `PUT ${leases}/created`,
    body: lease({ name: 'created', resourceVersion: '7' }, { holderIdentity: 'n1' }),
    expected: '201',
  },
  {
    title: 'a PUT of a Lease that does not exist, with a uid, creates nothing',
    request: `PUT ${leases}/again`,
    body: lease({ name: 'again', uid: '{{a.metadata.uid}}', resourceVersion: '7' }),
    expected: '409 Conflict',
  },
  {
    title: 'a merge patch sets and removes fields',
    request: `PATCH ${leases}/a`,
    contentType: merge,
    body: {
      metadata: { labels: { team: 'two' }, annotations: { note: 'mine' } },
      spec: { holderIdentity: null, leaseDurationSeconds: 10 },
    },
    expected: '200',
    save: 'a3',
  },
  {
    title: 'a merge patch without a change keeps the resourceVersion',
    request: `PATCH ${leases}/a`,
    contentType: merge,
    body: { metadata: { annotations: { note: 'mine', other: null } } },
    expected: '200',
  },
  {
    title: 'a merge patch of an older version is a conflict',
    request: `PATCH ${leases}/a`,
    contentType: merge,
    body: { metadata: { resourceVersion: '{{a.metadata.resourceVersion}}', annotations: { note: 'yours' } } },
    expected: '409 Conflict',
  },
  {
    title: 'a merge patch cannot change the uid',
    request: `PATCH ${leases}/a`,
    contentType: merge,
    body: { metadata: { uid: '{{b.metadata.uid}}', annotations: { note: 'yours' } } },
    expected: '422 Invalid',
  },
  {
    title: 'a merge patch of a Lease that does not exist is not found',
    request: `PATCH ${leases}/again`,
    contentType: merge,
    body: { metadata: { annotations: { note: 'mine' } } },
    expected: '404 NotFound',
  },
  {
    title: 'a JSON patch whose test holds is applied',
    request: `PATCH ${leases}/a`,
    contentType: 'application/json-patch+json',
    body: [
      { op: 'test', path: '/metadata/labels/team', value: 'two' },
      { op: 'replace', path: '/metadata/labels/team', value: 'three' },
      { op: 'add', path: '/metadata/annotations/a~1b', value: '1' },
      { op: 'remove', path: '/spec/leaseDurationSeconds' },
    ],
    expected: '200',
  },
  {
    title: 'a JSON patch whose test fails is refused',
    request: `PATCH ${leases}/a`,
    contentType: 'application/json-patch+json',
    body: [{ op: 'test', path: '/metadata/labels/team', value: 'two' }],
    expected: '422 Invalid',
  },
  {
    title: 'a JSON patch that removes a field that is not there is refused',
    request: `PATCH ${leases}/a`,
    contentType: 'application/json-patch+json',
    body: [{ op: 'remove', path: '/spec/leaseDurationSeconds' }],
    expected: '422 Invalid',
  },
]
