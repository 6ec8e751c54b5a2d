import { expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { ApiError } from '../../kube/errors.ts'
import { createOtherOperatorSource, type OtherOperatorSource } from './other-operator.ts'

const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }

function sourceOf(answer: () => Promise<unknown>, isIgnored = false): { source: OtherOperatorSource; asked: string[] } {
  const asked: string[] = []
  const source = createOtherOperatorSource({
    transport: {
      json: async <T>(method: string, path: string) => {
        asked.push(`${method} ${path}`)
        return (await answer()) as T
      },
    },
    root: temporaryHost().host,
    folders,
    isIgnored,
    signal: new AbortController().signal,
  })
  return { source, asked }
}

const refusal = (status: number): Promise<never> =>
  Promise.reject(new ApiError({ status, reason: 'Unknown', message: 'no' }))

test.each([
  ['is served where the API server describes it', () => Promise.resolve({ kind: 'APIGroup' }), true],
  ['is not served where the API server does not find it', () => refusal(404), false],
])('the group of NodeWright %s', async (_, answer, expected) => {
  const { source, asked } = sourceOf(answer)
  await source.askForGroup()
  expect([asked, source.current().isNodeWrightServed]).toEqual([['GET /apis/nodewright.nvidia.com'], expected])
})

test.each([403, 503])('an API server that answers %i has not answered', async (status) => {
  await expect(sourceOf(() => refusal(status)).source.askForGroup()).rejects.toThrow('no')
})

test('nobody looks where the settings say that nothing of it counts', async () => {
  const { source, asked } = sourceOf(() => Promise.resolve({}), true)
  await source.askForGroup()
  await source.lookAtFolders(['demo'])
  expect([asked, source.current().isNodeWrightServed, source.current().files.size]).toEqual([[], false, 0])
})
