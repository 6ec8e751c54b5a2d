import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { known } from '../../stages/model/snapshot.ts'
import { notFoundError } from '../base/framework/command-error.ts'
import type { Identity, DashboardSource } from './page-data.ts'
import { startDashboardServer } from './server.ts'

const identity: Identity = {
  context: 'test',
  server: 'https://api.test',
  namespace: 'skyhook',
  user: known('alice'),
  version: '1',
  isLive: true,
}

const silent: DashboardSource = {
  identity,
  follow: (_onMoment, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  explain: ({ node }) => Promise.reject(notFoundError(`there is no Node ${node}`, 'kubectl get nodes')),
  followOutput: (_of, onPart) => Promise.resolve(onPart({ note: 'over' })),
  manifest: () => Promise.resolve('kind: Skyhook\n'),
  plan: (text) => Promise.resolve({ isRefused: false, disrupts: false, text }),
}

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string }

async function startDashboard() {
  const ending = new AbortController()
  const random = createSeededRandom(7)
  const server = await startDashboardServer({ source: silent, random, signal: ending.signal, port: 0 })
  onTestFinished(async () => await server.close())
  const { port, host, origin, searchParams, pathname } = new URL(server.url)
  const token = searchParams.get('token') ?? ''
  const folder = pathname.slice(0, -1)
  /** Reads to the end, or for a stream to its first bytes. */
  const askOutside = (path: string, headers: IncomingHttpHeaders = {}, method = 'GET', body = ''): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, method, headers: { host, ...headers }, agent: false }
      const request = httpRequest(options, (response) => {
        let text = ''
        const answer = (): void => resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
        response.on('data', (data: Buffer) => {
          text += data.toString()
          if (response.headers['content-type'] === 'text/event-stream') {
            answer()
            request.destroy()
          }
        })
        response.on('end', answer)
      })
      request.on('error', reject)
      request.end(body)
    })
  const ask: typeof askOutside = async (path, ...rest) => await askOutside(`${folder}${path}`, ...rest)
  const enter = async (): Promise<string> =>
    (await ask(`/?token=${token}`)).headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  return { ask, askOutside, enter, token, folder, host, origin, port, ending, server }
}

test('the token of the link works once and becomes a cookie that scripts and other sites do not get', async () => {
  const { ask, token, port, folder } = await startDashboard()
  const first = await ask(`/?token=${token}`)
  expect(first.status).toBe(200)
  const [cookie = ''] = first.headers['set-cookie'] ?? []
  expect(cookie).toMatch(
    new RegExp(`^skyhook-dashboard-${port}=[0-9a-f]{64}; HttpOnly; SameSite=Strict; Path=${folder}/$`),
  )
  expect(cookie).not.toContain(token)
  const second = await ask(`/?token=${token}`)
  expect([second.status, second.headers['set-cookie']]).toEqual([401, undefined])
  const value = cookie.split(';')[0] ?? ''
  for (const path of ['/', '/page.js', '/page.css', '/api/manifest?skyhook=s'])
    expect((await ask(path, { cookie: value })).status).toBe(200)
})

test('nothing is served outside of the folder of the link, also with the token or the cookie', async () => {
  const { askOutside, enter, token, folder } = await startDashboard()
  expect(folder).toMatch(/^[/][0-9a-f]{32}$/)
  for (const path of ['/', folder, `${folder}x/`, `/${'0'.repeat(32)}/`])
    expect((await askOutside(`${path}?token=${token}`)).status).toBe(401)
  const cookie = await enter()
  for (const path of ['/', '/page.js', '/api/manifest?skyhook=s', folder, `${folder}x/`, `${folder}/../`])
    expect((await askOutside(path, { cookie })).status).toBe(401)
})

test('a wrong token is refused and does not use up the right one', async () => {
  const { ask, token } = await startDashboard()
  for (const wrong of ['', 'x', `${token}0`, token.replace(/./g, '0')])
    expect((await ask(`/?token=${wrong}`)).status).toBe(401)
  expect((await ask(`/?token=${token}`)).status).toBe(200)
})

test('nothing is served without the cookie, or with one of another dashboard', async () => {
  const { ask, enter, port } = await startDashboard()
  const cookie = await enter()
  const [, session = ''] = cookie.split('=')
  const wrong = [undefined, 'a=b', `skyhook-dashboard-1=${session}`, `skyhook-dashboard-${port}=${session.slice(1)}`]
  for (const path of ['/', '/page.js', '/api/events', '/api/node?skyhook=s&node=n', '/api/unknown'])
    for (const one of wrong) expect((await ask(path, one === undefined ? {} : { cookie: one })).status).toBe(401)
})

test('a Host that is not the dashboard is refused, also with token and cookie', async () => {
  const { ask, enter, token, port } = await startDashboard()
  const foreign = ['evil.example', `evil.example:${port}`, '127.0.0.1', `127.0.0.1:1`, `127.0.0.1.evil.example:${port}`]
  for (const host of foreign) expect((await ask(`/?token=${token}`, { host })).status).toBe(403)
  const cookie = await enter()
  expect(cookie).not.toBe('')
  for (const host of foreign) {
    const { status, text } = await ask('/', { host, cookie })
    expect({ host, status, isPage: text.includes('<html') }).toEqual({ host, status: 403, isPage: false })
  }
  expect((await ask('/', { host: `localhost:${port}`, cookie })).status).toBe(200)
})

test('requests of pages of other origins are refused', async () => {
  const { ask, enter, origin, port } = await startDashboard()
  const cookie = await enter()
  const body = JSON.stringify({ text: 'x' })
  for (const foreign of ['https://evil.example', 'null', 'http://127.0.0.1:1', `https://127.0.0.1:${port}`]) {
    expect((await ask('/api/events', { cookie, origin: foreign })).status).toBe(403)
    expect((await ask('/api/plan', { cookie, origin: foreign }, 'POST', body)).status).toBe(403)
  }
  for (const site of ['cross-site', 'same-site'])
    expect((await ask('/api/manifest?skyhook=s', { cookie, 'sec-fetch-site': site })).status).toBe(403)
  expect((await ask('/api/plan', { cookie }, 'POST', body)).status).toBe(403)
  expect((await ask('/api/plan', { cookie, origin }, 'POST', body)).status).toBe(200)
})

test('methods that change something are refused', async () => {
  const { ask, enter, origin } = await startDashboard()
  const cookie = await enter()
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    expect((await ask('/api/manifest?skyhook=s', { cookie, origin }, method)).status).toBe(405)
  expect((await ask('/api/manifest?skyhook=s', { cookie, origin }, 'POST')).status).toBe(405)
})

test('every answer forbids scripts of others, frames, caches and referrers', async () => {
  const { ask, enter } = await startDashboard()
  const cookie = await enter()
  for (const answer of [await ask('/', { cookie }), await ask('/api/events', { cookie }), await ask('/')]) {
    const { headers } = answer
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self';")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toMatch(/unsafe|\*|http/)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  }
})

test('the dashboard listens on loopback alone', async () => {
  const { server } = await startDashboard()
  expect(new URL(server.url).hostname).toBe('127.0.0.1')
  expect(server.address()).toMatchObject({ address: '127.0.0.1', family: 'IPv4' })
})

test('an error names what is wrong and how to fix it', async () => {
  const { ask, enter, origin } = await startDashboard()
  const cookie = await enter()
  const missing = await ask('/api/node?skyhook=s&node=gone', { cookie })
  expect(missing.status).toBe(404)
  expect(JSON.parse(missing.text)).toEqual({ error: 'there is no Node gone', remedy: 'kubectl get nodes' })
  const incomplete = await ask('/api/node?skyhook=s', { cookie })
  expect([incomplete.status, incomplete.text]).toEqual([400, expect.stringContaining('?node=')])
  const odd = await ask('/api/plan', { cookie, origin }, 'POST', 'not JSON')
  expect(odd.status).toBe(400)
  const large = await ask('/api/plan', { cookie, origin }, 'POST', 'x'.repeat(3_000_000)).catch(() => undefined)
  expect([undefined, 400]).toContain(large?.status)
})

test('texts of others have no effect in the page', async () => {
  const { ask, enter, origin } = await startDashboard()
  const cookie = await enter()
  for (const text of Object.values(hostileTexts).filter(({ length }) => length < 100_000)) {
    const body = JSON.stringify({ text })
    const answer = await ask('/api/plan', { cookie, origin }, 'POST', body)
    expect([answer.status, effectsOf((JSON.parse(answer.text) as { text: string }).text)]).toEqual([200, []])
  }
})

test('the stream of events says after which pause a browser connects again', async () => {
  const { ask, enter } = await startDashboard()
  const { text, headers } = await ask('/api/events', { cookie: await enter() })
  expect(headers['content-type']).toBe('text/event-stream')
  expect(text).toContain('retry: ')
})

test('a port that is taken is an error of the system', async () => {
  const { port, ending } = await startDashboard()
  const options = { source: silent, random: createSeededRandom(1), signal: ending.signal, port: Number(port) }
  await expect(startDashboardServer(options)).rejects.toMatchObject({ code: 'EADDRINUSE' })
})
