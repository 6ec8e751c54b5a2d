/** An agent asks the API server for so much per minute and no more, also in trouble, and never in a loop. */
import { evidenceOf } from './evidence.ts'
import { hostOfClient } from './cluster.ts'
import type { Promised } from './promised.ts'

/**
 * Of a node's blocked pods together one is tried each second at first, with a read of the pod before it. The first try
 * of each pod by each agent does not count: a node drains as many as it has.
 */
const maxEvictionsPerMinute = 2 * 60
/** Requests of one kind for one object in a second. */
const maxAlikePerSecond = 50
/** A watch that ends is opened again after a pause. */
const maxAlikeWatchesPerSecond = 10

type Window = { startMs: number; count: number }

export const requestRate: Promised = {
  name: 'request-rate',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    const minutes = new Map<string, Window>()
    const seconds = new Map<string, Window>()
    const startedAtMs = new Map<string, number>()
    const triedPods = new Map<string, Set<string>>()
    let checks = 0

    const countIn = (windows: Map<string, Window>, key: string, atMs: number, lengthMs: number): number => {
      let window = windows.get(key)
      if (window === undefined || atMs - window.startMs >= lengthMs) {
        window = { startMs: atMs, count: 0 }
        windows.set(key, window)
      }
      return ++window.count
    }

    const isFirstTry = (host: string, request: string): boolean => {
      const tried = triedPods.get(host) ?? new Set()
      triedPods.set(host, tried)
      return tried.size < tried.add(request).size
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind === 'host' && event.event.event === 'agentStarted') {
          if (event.event.kind !== 'agent') return
          startedAtMs.set(event.host, atMs)
          minutes.delete(`agent:${event.host}`)
          minutes.delete(`agent:${event.host} evicts`)
          triedPods.delete(event.host)
          return
        }
        if (event.kind !== 'answered') return
        const { client, verb, resource, name, query } = event.entry
        const host = hostOfClient(client, 'agent')
        if (host === undefined && hostOfClient(client, 'census') === undefined) return
        checks++
        const isWatch = verb === 'watch'
        const object = isWatch ? (query['fieldSelector'] ?? query['labelSelector'] ?? name) : name
        const alike = countIn(seconds, `${client} ${verb} ${resource} ${object}`, atMs, 1_000)
        if (alike > (isWatch ? maxAlikeWatchesPerSecond : maxAlikePerSecond))
          violate(`${client} sends ${alike} times in a second: ${verb} ${resource} ${object}`)
        if (host === undefined || isWatch) return
        const isFirst = atMs - (startedAtMs.get(host) ?? 0) < 60_000
        const isEviction = resource === 'pods/eviction' || (resource === 'pods' && verb === 'get')
        if (isEviction && isFirstTry(host, `${verb} ${resource} ${name}`)) return
        const count = countIn(minutes, isEviction ? `${client} evicts` : client, atMs, 60_000)
        const limit = isEviction ? maxEvictionsPerMinute : world.maxRequests[isFirst ? 'inFirstMinute' : 'perMinute']
        if (count > limit)
          violate(`${client} sends more than ${limit} requests in a minute; the last: ${verb} ${resource}`)
      },
      checks: () => checks,
    }
  },
}
