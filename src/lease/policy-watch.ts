/** The DeploymentPolicies, watched from the first request for one of them. */
import { isForbidden } from '../kube/errors.ts'
import type { KubeObject } from '../kube/objects.ts'
import { type Reflector, type ReflectorFact, startReflector } from '../kube/reflector.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { policiesPath } from '../schemas/api.ts'
import type { Clock, Random } from '../schemas/clock.ts'
import type { DeploymentPolicy, PolicyKnowledge } from '../schemas/deployment-policy.ts'
import { messageOf } from '../schemas/json.ts'

export type PolicyWatch = {
  /** What is known of the policy that a Skyhook names; undefined for a Skyhook without a policy. */
  of(name: string | undefined): PolicyKnowledge | undefined
}

export type PolicyWatchOptions = {
  readonly clock: Clock
  readonly random: Random
  /** An earlier answer is no longer current. */
  readonly onChange: () => void
  readonly onFact: (fact: ReflectorFact) => void
  readonly signal: AbortSignal
}

/** Most clusters have no policies: there the watch costs no request. */
export function createPolicyWatch(transport: KubeTransport, options: PolicyWatchOptions): PolicyWatch {
  const { clock, random, onChange, onFact, signal } = options
  let reflector: Reflector<DeploymentPolicy & KubeObject> | undefined
  let refused: Extract<PolicyKnowledge, { state: 'unknown' }> | undefined
  /** The same object as long as nothing changes: views of Skyhooks are compared. */
  const found = new Map<string, { readonly object: DeploymentPolicy; readonly knowledge: PolicyKnowledge }>()

  /** A missing permission lasts until someone grants it; other failures pass. */
  function refusal(error: unknown): PolicyKnowledge | undefined {
    if (!isForbidden(error)) return undefined
    const why = `the DeploymentPolicies cannot be listed, compare the roles with the chart's: ${messageOf(error)}`
    if (refused?.why !== why) refused = { state: 'unknown', why, isRefused: true }
    return refused
  }

  function start(): Reflector<DeploymentPolicy & KubeObject> {
    const started = startReflector<DeploymentPolicy & KubeObject>(transport, {
      clock,
      random,
      path: policiesPath,
      onChange: () => onChange(),
      onFact,
      signal,
    })
    started.synced.then(onChange, () => undefined)
    return started
  }

  return {
    of(name) {
      if (!name) return undefined
      reflector ??= start()
      const state = reflector.state()
      if (state.state === 'unknown') return refusal(state.lastError?.error) ?? unlisted
      const object = reflector.store.get(name)
      if (object === undefined) return missing
      const known = found.get(name)
      if (known?.object === object) return known.knowledge
      const { uid, generation = 0 } = object.metadata
      const knowledge: PolicyKnowledge = { state: 'found', uid, generation, spec: object.spec }
      found.set(name, { object, knowledge })
      return knowledge
    },
  }
}

const unlisted: PolicyKnowledge = { state: 'unknown', why: 'the DeploymentPolicies are not listed yet' }
const missing: PolicyKnowledge = { state: 'missing' }
