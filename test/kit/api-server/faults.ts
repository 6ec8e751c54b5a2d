/** What goes wrong between a client and the simulated server, by rules that a test switches on and off. */
import type { Random } from '../../../src/schemas/clock.ts'
import type { RoutedRequest } from './request.ts'

export type Fault =
  /** Refused before it takes effect: overload, admission, an error of the server. */
  | {
      readonly kind: 'refuse'
      readonly code: number
      readonly reason?: string
      readonly message?: string
      readonly retryAfterSeconds?: number
    }
  /** It takes effect, and the answer is an error of the server nonetheless. */
  | { readonly kind: 'fail-after-commit'; readonly code: number }
  | { readonly kind: 'refuse-connection' }
  /** The connection breaks before the request takes effect. */
  | { readonly kind: 'lose-request' }
  /** It takes effect, and the connection breaks before the answer. */
  | { readonly kind: 'lose-answer' }
  /** The connection breaks at once; the request takes effect later. */
  | { readonly kind: 'commit-late'; readonly afterMs: number }
  /** No effect and no answer: the client's timeout ends it. */
  | { readonly kind: 'silent' }
  /** It takes effect and is answered so much later. */
  | { readonly kind: 'slow'; readonly byMs: number }
  /** A read of any version (`resourceVersion=0`) is answered by a replica that is behind. */
  | { readonly kind: 'stale'; readonly byMs: number }
  /** Every event of the watch comes so much later. */
  | { readonly kind: 'slow-watch'; readonly byMs: number }
  /** The watch ends: in good order, with a broken connection, or inside an event. */
  | { readonly kind: 'cut-watch'; readonly afterMs: number; readonly how: 'end' | 'break' | 'tear' }
  /** The watch misses what follows, and ends with 410. */
  | { readonly kind: 'expire-watch'; readonly afterMs: number }

export type FaultRule = {
  /** For the counts. */
  readonly name: string
  /** Or decides for each request. */
  readonly fault: Fault | ((request: RoutedRequest) => Fault | undefined)
  /** Default: every request. */
  readonly matches?: (request: RoutedRequest) => boolean
  /** Default: 1. */
  readonly probability?: number
  /** How often it still happens; default: without end. */
  times?: number
}

export type FaultPlan = {
  /** The first rule that matches and hits is applied; change the list at any time. */
  rules: FaultRule[]
  /** How often each rule has hit, by name. */
  readonly hits: ReadonlyMap<string, number>
  /** The fault for a request; draws from the plan's chance only for rules that match. */
  pick(request: RoutedRequest): Fault | undefined
}

export function createFaultPlan(random: Random): FaultPlan {
  const hits = new Map<string, number>()
  return {
    rules: [],
    hits,
    pick(request) {
      for (const rule of this.rules) {
        const { name, matches, probability = 1, times = Infinity } = rule
        if (times <= 0 || matches?.(request) === false) continue
        const fault = typeof rule.fault === 'function' ? rule.fault(request) : rule.fault
        if (fault === undefined || !appliesTo(fault, request)) continue
        if (probability < 1 && random.number() >= probability) continue
        if (rule.times !== undefined) rule.times--
        hits.set(name, (hits.get(name) ?? 0) + 1)
        return fault
      }
      return undefined
    },
  }
}

function appliesTo({ kind }: Fault, { verb, query }: RoutedRequest): boolean {
  switch (kind) {
    case 'slow-watch':
    case 'cut-watch':
    case 'expire-watch':
      return verb === 'watch'
    case 'stale':
      return (verb === 'get' || verb === 'list') && query['resourceVersion'] === '0'
    case 'fail-after-commit':
    case 'commit-late':
      return verb !== 'get' && verb !== 'list' && verb !== 'watch'
    case 'refuse':
    case 'refuse-connection':
    case 'lose-request':
    case 'lose-answer':
    case 'silent':
    case 'slow':
      return true
  }
}
