import { metadataOnlyAccept } from '../../../src/kube/objects.ts'
import { type Step, watched } from './semantics-step.ts'

const merge = 'application/merge-patch+json'
const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
const policies = '/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies'
const skyhook = (metadata: object, rest: object): object => ({
  apiVersion: 'skyhook.nvidia.com/v1alpha1',
  kind: 'Skyhook',
  metadata,
  ...rest,
})
const spec = { packages: { tuning: { version: '1.0.0', image: 'registry.example.com/tuning' } } }

export const semanticsOfCustomResources: readonly Step[] = [
  { title: 'a group that is served names its versions', request: 'GET /apis/skyhook.nvidia.com', expected: '200' },
  { title: 'a group that is not served is not found', request: 'GET /apis/nodewright.nvidia.com', expected: '404' },
  { title: 'Skyhooks are listed', request: `GET ${skyhooks}`, expected: '200', save: 'skyhooks' },
  {
    title: 'a Skyhook is created without its status, with the defaults of the definition',
    request: `POST ${skyhooks}`,
    body: skyhook({ name: 'demo' }, { spec: { ...spec, unknown: 1, drain: {} }, status: { status: 'complete' } }),
    expected: '201',
    save: 'demo',
  },
  {
    title: 'a PUT of the status cannot change spec, labels or generation',
    request: `PUT ${skyhooks}/demo/status`,
    body: skyhook(
      {
        name: 'demo',
        uid: '{{demo.metadata.uid}}',
        resourceVersion: '{{demo.metadata.resourceVersion}}',
        labels: { a: 'b' },
      },
      { spec: { pause: true }, status: { status: 'in_progress' } },
    ),
    expected: '200',
    save: 'demo2',
  },
  {
    title: 'a PUT of the same status keeps the resourceVersion',
    request: `PUT ${skyhooks}/demo/status`,
    body: skyhook(
      { name: 'demo', uid: '{{demo.metadata.uid}}', resourceVersion: '{{demo2.metadata.resourceVersion}}' },
      { spec, status: { status: 'in_progress' } },
    ),
    expected: '200',
  },
  {
    title: 'a PUT of the status of an older version is a conflict',
    request: `PUT ${skyhooks}/demo/status`,
    body: skyhook(
      { name: 'demo', uid: '{{demo.metadata.uid}}', resourceVersion: '{{demo.metadata.resourceVersion}}' },
      { spec, status: { status: 'complete' } },
    ),
    expected: '409 Conflict',
  },
  {
    title: 'a PUT of the status without a resourceVersion is refused',
    request: `PUT ${skyhooks}/demo/status`,
    body: skyhook({ name: 'demo' }, { spec, status: { status: 'complete' } }),
    expected: '422 Invalid',
  },
  {
    title: 'a patch of the spec raises the generation and cannot touch the status',
    request: `PATCH ${skyhooks}/demo`,
    contentType: merge,
    body: { spec: { priority: 7 }, status: { status: 'complete' } },
    expected: '200',
  },
  {
    title: 'a dry run of a patch answers with the next generation',
    request: `PATCH ${skyhooks}/demo?dryRun=All`,
    contentType: merge,
    body: { spec: { priority: 8 } },
    expected: '200',
  },
  { title: 'the Skyhook is what it was before', request: `GET ${skyhooks}/demo`, expected: '200' },
  {
    title: 'a dry run of a creation answers with defaults and without a resourceVersion',
    request: `POST ${skyhooks}?dryRun=All`,
    body: skyhook({ name: 'rehearsed' }, { spec: { ...spec, drain: {} } }),
    expected: '201',
  },
  { title: 'the rehearsed Skyhook does not exist', request: `GET ${skyhooks}/rehearsed`, expected: '404 NotFound' },
  {
    title: 'a patch of metadata keeps the generation',
    request: `PATCH ${skyhooks}/demo`,
    contentType: merge,
    accept: metadataOnlyAccept,
    body: { metadata: { annotations: { a: '1' }, finalizers: ['skyhook.nvidia.com/skyhook'] } },
    expected: '200',
  },
  {
    title: 'a PUT replaces the spec and keeps the status',
    request: `PUT ${skyhooks}/demo`,
    body: skyhook({ name: 'demo', resourceVersion: '{{demo.metadata.resourceVersion}}' }, { spec }),
    expected: '409 Conflict',
  },
  {
    title: 'a strategic merge patch of a custom resource is refused',
    request: `PATCH ${skyhooks}/demo`,
    contentType: 'application/strategic-merge-patch+json',
    body: { spec: { priority: 9 } },
    expected: '415 UnsupportedMediaType',
  },
  {
    title: 'a dry run of a deletion answers with the object as it would be',
    request: `DELETE ${skyhooks}/demo?dryRun=All`,
    expected: '200',
  },
  { title: 'the Skyhook is not being deleted', request: `GET ${skyhooks}/demo`, expected: '200' },
  {
    title: 'a Skyhook with a finalizer stays and gets a new generation when it is deleted',
    request: `DELETE ${skyhooks}/demo`,
    expected: '200',
    save: 'deleted',
  },
  {
    title: 'a Skyhook that is being deleted cannot be created again',
    request: `POST ${skyhooks}`,
    body: skyhook({ name: 'demo' }, { spec }),
    expected: '409 AlreadyExists',
  },
  {
    title: 'its last finalizer is removed over exactly the version that was read',
    request: `PATCH ${skyhooks}/demo`,
    contentType: merge,
    accept: metadataOnlyAccept,
    body: {
      metadata: {
        uid: '{{deleted.metadata.uid}}',
        resourceVersion: '{{deleted.metadata.resourceVersion}}',
        finalizers: [],
      },
    },
    expected: '200',
  },
  { title: 'the Skyhook is gone', request: `GET ${skyhooks}/demo`, expected: '404 NotFound' },
  {
    title: 'a DeploymentPolicy is created with defaults inside its lists',
    request: `POST ${policies}`,
    body: {
      apiVersion: 'skyhook.nvidia.com/v1alpha1',
      kind: 'DeploymentPolicy',
      metadata: { name: 'slow' },
      spec: {
        default: { budget: { percent: 10 }, strategy: { linear: {} } },
        compartments: [
          {
            name: 'gpu',
            selector: { matchLabels: { pool: 'gpu' } },
            budget: { count: 1 },
            strategy: { exponential: { initialBatch: 2 } },
          },
        ],
      },
    },
    expected: '201',
  },
  {
    title: 'a watch of Skyhooks repeats what has happened',
    request: `WATCH ${skyhooks}?${watched}&resourceVersion={{skyhooks.metadata.resourceVersion}}`,
    expected: 'AMMMMD',
  },
  {
    title: 'a watch of Skyhooks by metadata has neither spec nor status',
    request: `WATCH ${skyhooks}?${watched}&resourceVersion={{skyhooks.metadata.resourceVersion}}`,
    accept: metadataOnlyAccept,
    expected: 'AMMMMD',
  },
]
