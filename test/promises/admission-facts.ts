/**
 * What a budget is judged by, made of the facts of a world by admission-view.ts: never a ledger, a journal or a slot
 * that says how many nodes there are, or who is out.
 */
import type { Budget } from '../../src/schemas/budget.ts'
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'

/** `atMs`: of one clock for the whole history. */
export type AdmissionFact = {
  readonly atMs: number
} /** The API server has another version. `by`: the host whose agent wrote it; undefined: somebody else. */ & (
  | {
      readonly kind: 'object'
      readonly of: 'node' | 'skyhook' | 'policy'
      readonly name: string
      readonly by: string | undefined
      readonly before?: KubernetesNode | undefined
      readonly after?: KubernetesNode | undefined
    }
  /** A consistent read of an agent that was answered. `fromMs`: what it shows is not older. */
  | {
      readonly kind: 'read'
      readonly host: string
      readonly of: 'skyhook' | 'policy' | 'slots'
      readonly name: string
      readonly fromMs: number
    }
  /**
   * A host went out of service for a Skyhook or is back, by its steps, services and boots and by our cordon.
   * `isUnasked`: no agent could ask before. `cause`: what was seen.
   */
  | {
      readonly kind: 'out'
      readonly host: string
      readonly skyhook: string
      readonly isOut: boolean
      readonly cause: string
      readonly isUnasked?: boolean
    }
  /** A slot that an agent took or gave back: what it asks before belongs to it, and no more than that. */
  | {
      readonly kind: 'slot'
      readonly host: string
      readonly skyhook: string
      readonly change: 'created' | 'deleted'
      readonly isRecovery?: boolean
      readonly compartment?: string | undefined
      /** Of an earlier registration of its Node. */
      readonly isFormer?: boolean
      /** The agent has another one for the Skyhook. */
      readonly hasOther?: boolean
    }
)

/** Moments at which a host does not count for others, for a reason that the promise excepts. */
export type Exemption = { readonly host: string; readonly fromOrder: number; untilOrder: number }

/** Hosts whose slots nobody can see, through the hand of a person or an older etcd. */
export type Excuses = { readonly all: readonly Exemption[]; readonly begin: (host: string) => void }

/** What a judge may ask, of the moment of the current fact. */
export type AdmissionWorld = {
  /** Position of the current fact. */
  readonly order: () => number
  readonly skyhook: (name: string) => Skyhook | undefined
  readonly policy: (name: string) => DeploymentPolicySpec | undefined
  readonly nodes: () => readonly KubernetesNode[]
  /** The host of a Node of this name. */
  readonly hostOf: (node: string) => string | undefined
  readonly isOut: (host: string, skyhook: string) => boolean
  readonly isTainted: (node: KubernetesNode) => boolean
  /** Its Node waits for required work, and nothing on it would have to leave; undefined: there is no such host. */
  readonly isJoining: (host: string, skyhook: string) => boolean | undefined
  /** What agents that run now take for a Skyhook without a budget; none: nobody counts. */
  readonly defaultBudgets: () => readonly Budget[]
  /** When the slot may go at the earliest, as `spec.pace` asks; undefined: the host does not soak. */
  readonly soaksUntilMs: (host: string, skyhook: string) => number | undefined
  readonly excuses: (skyhook: string) => Excuses
  /** What happened before this has been counted: some agent has had the time (`countDelayMs`). */
  readonly countedUntilMs: () => number
  /** The times of facts are exact to so much: what was in force so long before or after a read counts in favor. */
  readonly slackMs: number
}

export type Judge = {
  on(fact: AdmissionFact): void
  /** Each second, where time passes between facts. */
  tick?(atMs: number): void
  /** The history is over. */
  end?(): void
  /** How often there was something to judge. */
  checks(): number
}
