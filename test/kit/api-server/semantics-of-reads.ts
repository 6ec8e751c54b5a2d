import { ofName, type Step, watched } from './semantics-step.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/fleet/leases'
const lease = (metadata: object): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata,
  spec: {},
})
const options = (preconditions: object): object => ({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions })

/** Reads, deletions and watches of the Leases that the steps before have written. */
export const semanticsOfReads: readonly Step[] = [
  {
    title: 'a Lease is read as of a resourceVersion of the past',
    request: `GET ${leases}/a?resourceVersion={{a.metadata.resourceVersion}}`,
    expected: '200',
  },
  {
    title: 'a Lease is read from the cache of the server',
    request: `GET ${leases}/b?resourceVersion=0`,
    expected: '200',
  },
  {
    title: 'a read as of a resourceVersion of the future times out',
    request: `GET ${leases}/a?resourceVersion=99999999`,
    expected: '504 Timeout',
  },
  {
    title: 'Leases are listed by an equal label',
    request: `GET ${leases}?labelSelector=team%3Dthree`,
    expected: '200',
  },
  {
    title: 'Leases are listed by unequal and missing labels',
    request: `GET ${leases}?labelSelector=team!%3Dtwo,!kind`,
    expected: '200',
  },
  {
    title: 'Leases are listed by sets of labels',
    request: `GET ${leases}?labelSelector=team%20in%20(one,three),kind,team%20notin%20(two)`,
    expected: '200',
  },
  {
    title: 'Leases are listed by name',
    request: `GET ${leases}?fieldSelector=metadata.name%3Db`,
    expected: '200',
  },
  {
    title: 'a field that cannot be selected by is refused',
    request: `GET ${leases}?fieldSelector=spec.holderIdentity%3Db`,
    expected: '400 BadRequest',
  },
  {
    title: 'a deletion with the uid of another object is a conflict',
    request: `DELETE ${leases}/a`,
    body: options({ uid: '{{b.metadata.uid}}' }),
    expected: '409 Conflict',
  },
  {
    title: 'a deletion of an older version is a conflict',
    request: `DELETE ${leases}/a`,
    body: options({ uid: '{{a.metadata.uid}}', resourceVersion: '{{a.metadata.resourceVersion}}' }),
    expected: '409 Conflict',
  },
  {
    title: 'a Lease is deleted with its uid',
    request: `DELETE ${leases}/a`,
    body: options({ uid: '{{a.metadata.uid}}' }),
    expected: '200',
  },
  {
    title: 'a deletion of a Lease that is gone is not found',
    request: `DELETE ${leases}/a`,
    body: options({ uid: '{{a.metadata.uid}}' }),
    expected: '404 NotFound',
  },
  {
    title: 'a Lease of the same name is a new object',
    request: `POST ${leases}`,
    body: lease({ name: 'a', labels: { team: 'one' } }),
    expected: '201',
  },
  {
    title: 'a watch repeats what has happened since a list',
    request: `WATCH ${leases}?${watched}&resourceVersion={{start.metadata.resourceVersion}}`,
    expected: 'AAMAMMDA',
  },
  {
    title: 'a watch by label shows an object that leaves the selection as deleted',
    request: `WATCH ${leases}?${watched}&resourceVersion={{start.metadata.resourceVersion}}&labelSelector=team%3Done`,
    expected: 'ADA',
  },
  {
    title: 'a watch by label shows an object that enters the selection as added',
    request: `WATCH ${leases}?${watched}&labelSelector=team%3Dthree&resourceVersion={{start.metadata.resourceVersion}}`,
    expected: 'AD',
  },
  {
    title: 'a watch by name shows no other object',
    request: `WATCH ${leases}?${watched}&${ofName('b')}&resourceVersion={{start.metadata.resourceVersion}}`,
    expected: 'A',
  },
  {
    title: 'a watch from any version starts with the objects that exist',
    request: `WATCH ${leases}?${watched}&resourceVersion=0`,
    expected: 'AAA',
  },
  {
    title: 'a watch from a version of the future is silent',
    request: `WATCH ${leases}?${watched}&resourceVersion=99999999`,
    expected: '',
  },
]
