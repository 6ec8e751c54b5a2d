import { expect, test } from 'vitest'
import { emptyView, moments, type Version } from '../cluster/moments.ts'
import type { AuditedRequest } from './audit.ts'
import { commitsOf } from './commits.ts'

const startMs = Date.parse('2026-01-01T00:00:00Z')

const nodeVersion = (resourceVersion: number, atMs: number, writtenMs = atMs): Version => ({
  kind: 'nodes',
  type: resourceVersion === 1 ? 'ADDED' : 'MODIFIED',
  object: {
    metadata: {
      name: 'n',
      uid: 'u',
      resourceVersion: String(resourceVersion),
      annotations: { 'skyhook.nvidia.com/x': String(resourceVersion) },
      managedFields: [{ manager: 'skyhookd', time: new Date(Math.floor((startMs + writtenMs) / 1_000) * 1_000) }],
    },
  } as never,
  resourceVersion,
  atMs: startMs + atMs,
})

const patchAt = (answeredMs: number): AuditedRequest => ({
  node: 'n',
  verb: 'patch',
  resource: 'nodes',
  subresource: undefined,
  namespace: undefined,
  name: 'n',
  uri: '/api/v1/nodes/n',
  receivedMs: startMs + answeredMs - 10,
  answeredMs: startMs + answeredMs,
  status: 200,
})

const timesOf = (versions: readonly Version[], audit: readonly AuditedRequest[]): readonly number[] =>
  commitsOf({
    moments: [...moments(emptyView(), versions)],
    audit,
    deletions: [],
    ownVersions: new Set<number>(),
  } as never).map(({ atMs }) => atMs - startMs)

test('a version is as old as the answer to the request that made it, which its watch shows later', () => {
  const versions = [nodeVersion(1, 0), nodeVersion(2, 5_000, 2_000), nodeVersion(3, 6_000)]
  expect(timesOf(versions, [patchAt(2_050)])).toEqual([0, 2_050, 6_000])
})

test('a request of before the last write did not make the version, even if the log has no later one', () => {
  const versions = [nodeVersion(1, 0), nodeVersion(2, 1_050), nodeVersion(3, 3_000), nodeVersion(4, 4_000)]
  expect(timesOf(versions, [patchAt(1_040), patchAt(3_005)])).toEqual([0, 1_040, 3_000, 4_000])
})
