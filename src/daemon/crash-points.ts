import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { HostRoot } from '../host/root.ts'
import type { Units } from '../host/units.ts'
import type { Transport } from '../kube/transport.ts'

/**
 * Every effect that outlives the agent passes a named point right after it: each durable write on the host, each
 * acknowledged write to the API server, each order to systemd. The tests kill the agent at each of them in turn. The points
 * sit in the ports that all effects go through, so no effect can be without one.
 */
export type CrashPoints = { pass(name: string): void }

/** Where the marker lies that the kill has happened: an agent dies once, not at each of its restarts. */
export type CrashOrder = {
  /** `name#n`: the n-th passage of that point, counted from 1. */
  readonly at?: string | undefined
  /** File that gets every passage as a line. */
  readonly recordTo?: string | undefined
  readonly marker: string
  readonly kill?: () => void
}

/** From the environment: SKYHOOKD_CRASH_AT and SKYHOOKD_CRASH_RECORD; undefined in ordinary life. */
export function crashOrderOf(env: NodeJS.ProcessEnv, hostRoot: string, copyDirRoot: string): CrashOrder | undefined {
  const at = env['SKYHOOKD_CRASH_AT']
  const recordTo = env['SKYHOOKD_CRASH_RECORD']
  if (!at && !recordTo) return undefined
  const folder = `${hostRoot}${copyDirRoot}/.agent`
  return {
    at,
    recordTo: recordTo && `${hostRoot}${recordTo}`,
    marker: `${folder}/crashed-at-${(at ?? '').replaceAll(/[^A-Za-z0-9#.-]/g, '_')}`,
  }
}

export function createCrashPoints({ at, recordTo, marker, kill = () => process.kill(process.pid, 'SIGKILL') }: CrashOrder): CrashPoints {
  const passages = new Map<string, number>()
  const isArmed = at !== undefined && at !== '' && !existsSync(marker)
  return {
    pass(name) {
      const count = (passages.get(name) ?? 0) + 1
      passages.set(name, count)
      if (recordTo) appendFileSync(recordTo, `${name}#${count}\n`)
      if (!isArmed || `${name}#${count}` !== at) return
      mkdirSync(dirname(marker), { recursive: true })
      writeFileSync(marker, '', { flush: true })
      kill()
    },
  }
}

/** Durable writes, named by what the file is. */
export function watchedRoot(root: HostRoot, points: CrashPoints): HostRoot {
  return {
    ...root,
    async writeFileDurable(path, data, mode) {
      await root.writeFileDurable(path, data, mode)
      points.pass(`file:${kindOfFile(path)}`)
    },
  }
}

function kindOfFile(path: string): string {
  const agentFile = /\/\.agent\/([^/]+)/.exec(path)?.[1]
  if (agentFile !== undefined) return agentFile.replace(/\.json$/, '')
  const published = /\/(flags|history|interrupts|configmaps|node-metadata)(\/|$)/.exec(path)?.[1]
  return published ?? 'other'
}

/** Acknowledged writes, named by verb and resource. Events are left out: nothing waits for them. */
export function watchedTransport(transport: Transport, points: CrashPoints): Transport {
  return {
    ...transport,
    async json(method, path, options) {
      const answer = await transport.json(method, path, options)
      const resource = resourceOf(path)
      if (method !== 'GET' && resource !== 'events') points.pass(`api:${method} ${resource}`)
      return answer as never
    },
  }
}

/** `nodes/status` of `/api/v1/nodes/n/status`, `leases` of `/apis/…/namespaces/x/leases/y`. */
function resourceOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  const start = parts[0] === 'api' ? 2 : 3
  const rest = parts[start] === 'namespaces' && parts.length > start + 2 ? parts.slice(start + 2) : parts.slice(start)
  const [resource = '', , subresource] = rest
  return subresource === undefined ? resource : `${resource}/${subresource}`
}

/** Orders to systemd, once it answered. */
export function watchedUnits(units: Units, points: CrashPoints): Units {
  const after =
    <A extends unknown[], T>(name: string, order: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      const answer = await order(...args)
      points.pass(name)
      return answer
    }
  return {
    ...units,
    startTransient: after('unit:start', (...args: Parameters<Units['startTransient']>) => units.startTransient(...args)),
    restart: after('unit:restart', (...args: Parameters<Units['restart']>) => units.restart(...args)),
    stop: after('unit:stop', (...args: Parameters<Units['stop']>) => units.stop(...args)),
    reload: after('unit:reload', (...args: Parameters<Units['reload']>) => units.reload(...args)),
  }
}
