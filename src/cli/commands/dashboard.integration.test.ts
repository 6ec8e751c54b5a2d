import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { commandContext } from '../../../test/kit/tool/command-context.ts'
import { turnsUntil } from '../../../test/kit/event-loop.ts'
import { sampleBundle } from '../../../test/kit/tool/sample-bundle.ts'
import { systemClock } from '../../daemon/platform/system-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { packBundle } from '../bundle/archive.ts'
import { dashboard } from './dashboard.ts'

test('an archive is served without a kubeconfig and without any request to a cluster', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'b.tar.gz')
  writeFileSync(file, await packBundle(await sampleBundle()))
  const ending = new AbortController()
  const noCluster = new Proxy({} as KubeTransport, { get: () => expect.unreachable('a request') as never })
  const { context, stdout } = commandContext({ transport: noCluster, clock: systemClock, signal: ending.signal })
  const connect = () => Promise.reject(new Error('a kubeconfig was read'))
  const run = dashboard.run({ ...context, connect }, { arguments: {}, flags: { from: file, port: 0 } })
  onTestFinished(() => ending.abort())
  await Promise.race([run, turnsUntil(() => stdout().endsWith('\n'))])
  expect(stdout()).toMatch(/^http:.*\n$/)
  const { origin, href } = new URL(stdout().trim())
  const entered = await fetch(href)
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? ''
  const ask = async (path: string, rest: RequestInit = {}) =>
    await fetch(new URL(path, href), { ...rest, headers: { cookie, origin } })
  const events = (await ask('api/events')).body?.getReader()
  let text = ''
  while (!text.endsWith('}\n\n')) text += Buffer.from((await events?.read())?.value ?? []).toString()
  await events?.cancel()
  expect(text).toContain(`"isLive":false,"file":${JSON.stringify(file)},"takenAtMs":1772366400000`)
  expect(text).toContain('"nodes":{"known":true,"value":[{"node":"n1","status":"unknown","reason":"AgentNotReady"')
  expect(await (await ask('api/node?skyhook=tuning&node=n1')).json()).toMatchObject({ nowMs: 1772366400000 })
  const body = JSON.stringify({
    text: ((await (await ask('api/manifest?skyhook=tuning')).json()) as { text: string }).text,
  })
  expect(await (await ask('api/plan', { method: 'POST', body })).json()).toMatchObject({ isRefused: false })
  ending.abort(new DOMException('ctrl-C', 'AbortError'))
  expect(await run).toBe(0)
})
