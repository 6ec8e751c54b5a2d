import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { countsOf, readAuditLog, sizeOf } from './audit-log.ts'

const at = (second: number): string => `2026-03-01T12:00:0${second}.000000Z`
const line = (auditID: string, verb: string, second: number, stage = second, objectRef: object = {}): string =>
  JSON.stringify({
    auditID,
    verb,
    objectRef: { resource: 'leases', name: 'x', ...objectRef },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: at(second),
    stageTimestamp: at(stage),
  })

async function logOf(...lines: string[]): Promise<string> {
  const folder = temporaryFolder()
  const file = join(folder, 'audit.log')
  await writeFile(file, lines.map((one) => `${one}\n`).join(''))
  return file
}

const read = async (file: string, fromByte: number, second: number) =>
  await readAuditLog(file, { fromByte, toByte: await sizeOf(file), sinceMs: Date.parse(at(second)) })

test('a watch that has started and ended is one request', async () => {
  const file = await logOf(line('a', 'watch', 1), line('a', 'watch', 1, 3))
  expect(await read(file, 0, 0)).toHaveLength(1)
})

test('a watch that ends in a phase and started before it does not count in that phase', async () => {
  const before = line('a', 'watch', 1)
  const file = await logOf(before, line('b', 'create', 3), line('a', 'watch', 1, 4))
  const requests = await read(file, before.length + 1, 2)
  expect(requests.map(({ verb }) => verb)).toEqual(['create'])
})

test('requests are counted by verb and resource, and those of the election apart', async () => {
  const file = await logOf(
    line('a', 'patch', 1, 1, { resource: 'nodes', subresource: 'status' }),
    line('b', 'get', 1, 1, { name: 'skyhookd-census' }),
    line('c', 'get', 1, 1, { name: 'skyhookd-census' }),
  )
  expect([...countsOf(await read(file, 0, 0))]).toEqual([
    ['get election', 2],
    ['patch nodes/status', 1],
  ])
})
