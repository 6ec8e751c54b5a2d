/** Helm and the chart on a real API server, and plain requests to it as administrator or as an agent. */
import { execFile } from 'node:child_process'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startApiServer, type ApiServer } from './api-server.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')

/** Name and namespace of the release in these tests. */
export const namespace = 'skyhook'
export const chart = join(root, 'chart')

export type Json = Record<string, unknown>
/** `message` is the API server's reason for a refusal, empty for success; `warning` what kubectl would print. */
export type Answer = {
  readonly status: number
  readonly message: string
  readonly warning: string
  readonly body: Json
}
export type Send = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>

export type ChartCluster = {
  readonly server: ApiServer
  readonly admin: Send
  /** The same server, with a token. */
  as(token: string): Send
  /** Runs the real helm in the release's namespace. */
  helm(...args: string[]): Promise<string>
  stop(): Promise<void>
}

/** Runs the real helm, which is built the first time. */
export async function helmProgram(): Promise<(...parameters: string[]) => Promise<string>> {
  const bin = (await run(join(root, 'test', 'sandbox', 'build-binaries.sh'))).stdout.trim()
  return async (...parameters) => (await run(join(bin, 'helm'), parameters, { maxBuffer: 2 ** 24 })).stdout
}

/** `stop` stops the server, too. */
export async function startChartCluster(server: ApiServer): Promise<ChartCluster> {
  const helm = await helmProgram()
  const { ca, cert, key } = await server.credentials.current()
  const anonymous = new Agent({ keepAlive: true, ca })
  const certified = new Agent({ keepAlive: true, ca, cert, key })
  return {
    server,
    admin: sender(server.url, certified),
    as: (token) => sender(server.url, anonymous, token),
    // first, so that a test can override it
    helm: async (...args) => await helm('--kubeconfig', server.kubeconfig, '--namespace', namespace, ...args),
    async stop() {
      anonymous.destroy()
      certified.destroy()
      await server.stop()
    },
  }
}

function sender(server: string, agent: Agent, token?: string): Send {
  return (method, path, body, contentType = 'application/json') =>
    new Promise((resolve, reject) => {
      const headers: Record<string, string> = { accept: 'application/json', 'content-type': contentType }
      if (token !== undefined) headers['authorization'] = `Bearer ${token}`
      const sent = request(`${server}${path}`, { method, agent, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => {
          // For a path that it does not serve, such as that of a removed definition, the server answers in plain text.
          const isJson = response.headers['content-type']?.startsWith('application/json') ?? false
          const answer: Json = isJson ? (JSON.parse(text) as Json) : { message: text.trim() }
          const status = response.statusCode ?? 0
          const message = status < 300 ? '' : String(answer['message'])
          resolve({ status, message, warning: response.headers['warning'] ?? '', body: answer })
        })
        response.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
}

/** Installs the chart as an administrator would; `values` as `--set`. */
export async function installChart(cluster: ChartCluster, ...values: string[]): Promise<void> {
  const set = values.flatMap((value) => ['--set', value])
  await cluster.helm('install', 'skyhookd', chart, '--create-namespace', ...set)
}

/** A new server with the chart installed, with `values` as `--set`. */
export async function startInstalledCluster(...values: string[]): Promise<ChartCluster> {
  const cluster = await startChartCluster(await startApiServer())
  await installChart(cluster, ...values)
  return cluster
}

/** Retries until the answer fits, for changes that take effect a moment after the write. */
export async function until<T>(
  ask: () => Promise<T>,
  isExpected: (answer: T) => boolean,
  timeoutMs = 15_000,
): Promise<T> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (isExpected(answer)) return answer
    if (performance.now() > end)
      throw new Error(`not within ${timeoutMs} ms; last answer: ${JSON.stringify(answer).slice(0, 500)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
