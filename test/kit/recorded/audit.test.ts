import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../files/temporary-folder.ts'
import { isConsistentRead, readAudit } from './audit.ts'
import { parseSteps } from './step-lines.ts'

const entry = (id: string, second: number, uri: string, username = 'system:serviceaccount:skyhook:skyhookd'): string =>
  JSON.stringify({
    auditID: id,
    stage: 'ResponseComplete',
    verb: 'get',
    requestURI: uri,
    user: { username, extra: { 'authentication.kubernetes.io/node-name': ['node-1'] } },
    objectRef: { resource: 'skyhooks', name: 'kernels' },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: `2026-01-01T00:00:0${second}.000000Z`,
    stageTimestamp: `2026-01-01T00:00:0${second}.500000Z`,
  })

test('the audit log is read with its renamed parts, each request once, without a line that a kill has cut', async () => {
  const folder = temporaryFolder()
  const [first, second] = [entry('a', 1, '/skyhooks/kernels?resourceVersion=5'), entry('b', 2, '/skyhooks/kernels')]
  writeFileSync(join(folder, 'audit-2026-01-01.log'), `${first}\n${first}\n${entry('c', 3, '/x', 'admin')}\n`)
  writeFileSync(join(folder, 'audit.log'), `${second}\n${entry('d', 4, '/y').slice(0, -20)}`)
  const requests = await readAudit(folder)
  expect(requests.map(({ node, name, receivedMs, answeredMs }) => [node, name, answeredMs - receivedMs])).toEqual([
    ['node-1', 'kernels', 500],
    ['node-1', 'kernels', 500],
  ])
  expect(requests.map(isConsistentRead)).toEqual([false, true])
})

test('a line that a power cut has shortened is no step', () => {
  const whole = '1767225600.250000000 reboots kernel 1.1.0 apply 7 ends'
  expect(parseSteps(`${whole}\n${whole.slice(0, -8)}`)).toEqual([
    {
      atMs: 1_767_225_600_250,
      skyhook: 'reboots',
      package: 'kernel',
      version: '1.1.0',
      mode: 'apply',
      round: '7',
      what: 'ends',
    },
  ])
})
