import { type Step, watched } from './semantics-step.ts'

const merge = 'application/merge-patch+json'
const pods = '/api/v1/namespaces/fleet/pods'
const budgets = '/apis/policy/v1/namespaces/fleet/poddisruptionbudgets'
const pod = (name: string, labels: object, nodeName?: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: {
    ...(nodeName !== undefined && { nodeName }),
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 30,
    containers: [{ name: 'main', image: 'none' }],
  },
})
const running = (isReady: boolean): object => ({
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
})
const eviction = (name: string): object => ({
  apiVersion: 'policy/v1',
  kind: 'Eviction',
  metadata: { name, namespace: 'fleet' },
})
const budgetStatus = (allowed: number, desired: number, healthy: number, generation = 1): object => ({
  status: {
    observedGeneration: generation,
    disruptionsAllowed: allowed,
    desiredHealthy: desired,
    currentHealthy: healthy,
    expectedPods: healthy,
  },
})

const ready = (name: string, labels: object): Step[] => [
  {
    title: `the pod ${name} is created on a node`,
    request: `POST ${pods}`,
    body: pod(name, labels, 'n1'),
    expected: '201',
    save: name,
  },
  {
    title: `the pod ${name} reports that it runs`,
    request: `PATCH ${pods}/${name}/status`,
    contentType: merge,
    body: running(true),
    expected: '200',
  },
]

export const semanticsOfPods: readonly Step[] = [
  { title: 'pods are listed', request: `GET ${pods}`, expected: '200', save: 'pods' },
  ...ready('p1', { app: 'cart' }),
  ...ready('p2', { app: 'cart' }),
  ...ready('p3', { app: 'free' }),
  {
    title: 'a pod without a node is created',
    request: `POST ${pods}`,
    body: pod('unbound', { app: 'cart' }),
    expected: '201',
  },
  {
    title: 'pods of one node are listed in all namespaces',
    request: 'GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1',
    expected: '200',
  },
  {
    title: 'a pod that is on a node stays there until its containers have ended',
    request: `DELETE ${pods}/p3`,
    body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: '{{p3.metadata.uid}}' } },
    expected: '200',
  },
  { title: 'a second deletion of the pod changes nothing', request: `DELETE ${pods}/p3`, expected: '200' },
  {
    title: 'the kubelet ends the deletion of the pod',
    request: `DELETE ${pods}/p3`,
    body: {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: '{{p3.metadata.uid}}' },
    },
    expected: '200',
  },
  { title: 'the pod is gone', request: `GET ${pods}/p3`, expected: '404 NotFound' },
  {
    title: 'an eviction of an earlier pod of this name is refused',
    request: `POST ${pods}/p1/eviction`,
    body: { ...eviction('p1'), deleteOptions: { preconditions: { uid: 'of-an-earlier-pod' } } },
    expected: '409 Conflict',
  },
  { title: 'an eviction that is refused leaves the pod alone', request: `GET ${pods}/p1`, expected: '200' },
  {
    title: 'a disruption budget is created',
    request: `POST ${budgets}`,
    body: {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'cart' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'cart' } } },
    },
    expected: '201',
  },
  {
    title: 'an eviction before the budget was counted is refused',
    request: `POST ${pods}/p1/eviction`,
    body: eviction('p1'),
    expected: '429 TooManyRequests',
  },
  {
    title: 'the budget is counted: one pod may go',
    request: `PATCH ${budgets}/cart/status`,
    contentType: merge,
    body: budgetStatus(1, 1, 2),
    expected: '200',
  },
  ...['p1', 'p2'].map((name) => ({
    title: `a dry run of the eviction of ${name} is granted`,
    request: `POST ${pods}/${name}/eviction?dryRun=All`,
    body: { ...eviction(name), deleteOptions: { dryRun: ['All'] } },
    expected: '201',
  })),
  { title: 'dry runs charge no budget', request: `GET ${budgets}/cart`, expected: '200' },
  { title: 'dry runs leave the pod alone', request: `GET ${pods}/p1`, expected: '200' },
  {
    title: 'the first eviction is granted',
    request: `POST ${pods}/p1/eviction`,
    body: eviction('p1'),
    expected: '201',
  },
  { title: 'the budget counts it', request: `GET ${budgets}/cart`, expected: '200' },
  {
    title: 'the pod terminates',
    request: `GET ${pods}/p1`,
    expected: '200',
  },
  {
    title: 'a second eviction of the same pod is granted for nothing',
    request: `POST ${pods}/p1/eviction`,
    body: eviction('p1'),
    expected: '201',
  },
  {
    title: 'the eviction of the next pod is refused',
    request: `POST ${pods}/p2/eviction`,
    body: eviction('p2'),
    expected: '429 TooManyRequests',
  },
  {
    title: 'a pod that is not ready is evicted when enough others are healthy',
    request: `PATCH ${pods}/p2/status`,
    contentType: merge,
    body: running(false),
    expected: '200',
  },
  {
    title: 'a second budget is created over the same pods',
    request: `POST ${budgets}`,
    body: {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'second' },
      spec: { maxUnavailable: 0, selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['cart'] }] } },
    },
    expected: '201',
  },
  {
    title: 'an eviction under two budgets is an error of the server',
    request: `POST ${pods}/p2/eviction`,
    body: eviction('p2'),
    expected: '500',
  },
  { title: 'the second budget is deleted', request: `DELETE ${budgets}/second`, expected: '200' },
  {
    title: 'the pod that is not ready is evicted although nothing is allowed',
    request: `POST ${pods}/p2/eviction`,
    body: eviction('p2'),
    expected: '201',
  },
  {
    title: 'a pod that waits for a node is evicted and is gone at once',
    request: `POST ${pods}/unbound/eviction`,
    body: eviction('unbound'),
    expected: '201',
  },
  { title: 'that pod is not found', request: `GET ${pods}/unbound`, expected: '404 NotFound' },
  {
    title: 'the eviction of a pod that is gone is not found',
    request: `POST ${pods}/unbound/eviction`,
    body: eviction('unbound'),
    expected: '404 NotFound',
  },
  {
    title: 'a change of its spec raises the generation of a budget',
    request: `PATCH ${budgets}/cart`,
    contentType: merge,
    body: { spec: { minAvailable: 2 } },
    expected: '200',
  },
  {
    title: 'an Event is created',
    request: 'POST /api/v1/namespaces/fleet/events',
    body: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e1', namespace: 'fleet' },
      involvedObject: { kind: 'Pod', namespace: 'fleet', name: 'p1' },
      reason: 'Drained',
      type: 'Normal',
      count: 1,
    },
    expected: '201',
  },
  {
    title: 'its count is raised',
    request: 'PATCH /api/v1/namespaces/fleet/events/e1',
    contentType: merge,
    body: { count: 2 },
    expected: '200',
  },
  {
    title: 'a ConfigMap is created',
    request: 'POST /api/v1/namespaces/fleet/configmaps',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'settings-' }, data: { a: '1' } },
    expected: '201',
    save: 'settings',
  },
  {
    title: 'the ConfigMap is read by the name that the server gave',
    request: 'GET /api/v1/namespaces/fleet/configmaps/{{settings.metadata.name}}',
    expected: '200',
  },
  {
    title: 'a Secret is created',
    request: 'POST /api/v1/namespaces/fleet/secrets',
    body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's1' }, type: 'Opaque', data: { a: 'MQ==' } },
    expected: '201',
  },
  {
    title: 'a watch of pods repeats what has happened',
    request: `WATCH ${pods}?${watched}&resourceVersion={{pods.metadata.resourceVersion}}`,
    expected: 'AMAMAMAMMDMMMMMMMD',
  },
  {
    title: 'a watch of the pods of one node does not show others',
    request: `WATCH /api/v1/pods?${watched}&resourceVersion=0&fieldSelector=spec.nodeName%3Dn1`,
    expected: 'AA',
  },
]
