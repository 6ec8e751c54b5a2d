/**
 * Writes ConfigMaps through several API servers in turn until its input ends. Arguments: a folder with ca.crt,
 * admin.crt and admin.key, and the servers' URLs. Prints a line for each write that a server acknowledged. At the end
 * it asks each server for all of them: the last lines are what each has.
 */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export type QuorumLine =
  | { readonly kind: 'acknowledged'; readonly name: string; readonly atMs: number }
  | { readonly kind: 'found'; readonly server: string; readonly names: readonly string[] }

/** A server that does not answer is left for the next one. */
const patienceMs = 1_000
const pauseMs = 50
const path = '/api/v1/namespaces/default/configmaps'

type Answer = { readonly status: number; readonly body: string }
type Ask = (method: string, url: string, body?: object) => Promise<Answer>

function createClient(folder: string): Ask {
  const file = (name: string): Buffer => readFileSync(join(folder, name))
  // a connection of its own for each request: one to a host that is gone would be found out late
  const agent = new Agent({ ca: file('ca.crt'), cert: file('admin.crt'), key: file('admin.key'), keepAlive: false })
  return async (method, url, body) =>
    await new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' }
      const sent = request(url, { method, agent, headers, signal: AbortSignal.timeout(patienceMs) }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part: string) => (text += part))
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: text })).on('error', reject)
      })
      sent.on('error', reject).end(body && JSON.stringify(body))
    })
}

const say = (line: QuorumLine): void => console.log(JSON.stringify(line))

async function main([folder = '', ...servers]: readonly string[]): Promise<void> {
  const ask = createClient(folder)
  const over = new AbortController()
  process.stdin.on('end', () => over.abort()).resume()
  for (let count = 0; !over.signal.aborted; count++) {
    const name = `write-${String(count).padStart(6, '0')}`
    const url = `${servers[count % servers.length]}${path}`
    const answer = await ask('POST', url, { metadata: { name } }).catch(() => undefined)
    if (answer?.status === 201) say({ kind: 'acknowledged', name, atMs: Date.now() })
    await sleep(pauseMs)
  }
  for (const server of servers) {
    const { body } = await ask('GET', `${server}${path}`)
    const { items } = JSON.parse(body) as { items: readonly { readonly metadata: { readonly name: string } }[] }
    say({ kind: 'found', server, names: items.map(({ metadata }) => metadata.name) })
  }
}

await main(process.argv.slice(2))
