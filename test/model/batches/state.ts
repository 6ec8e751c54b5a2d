/** A compartment whose nodes work in batches that censuses close, and what is the same in all of its states. */
import { skyhookScope } from '../../../src/lease/names.ts'
import type { Strategy } from '../../../src/lease/policy/strategy.ts'
import type { Slot } from '../../../src/lease/slot.ts'
import type { BatchState } from '../../../src/schemas/deployment-policy.ts'
import { listedSlot } from '../listed-slot.ts'
import type { Rules } from './rules.ts'

/** A node with a slot. */
export type Holding = {
  readonly is: 'granted' | 'working' | 'failed' | 'finished'
  readonly index: number
  readonly epoch: number
  /** It has failed before: a batch does not wait for it any more. */
  readonly wasFailed: boolean
  /** In how many batches it was a result. */
  readonly counted: number
  /** When it was admitted. */
  readonly rollout: number
  /** Of the work that it has finished; work that changes while it is under way is the new one at its end. */
  readonly finished?: number
}

export type BatchNode =
  | { readonly is: 'idle' | 'done' | 'gone' }
  /** Between its LIST and its CREATE, which may be answered late or never. */
  | { readonly is: 'listed'; readonly index: number; readonly epoch: number }
  | Holding

/** What people ask for. */
export type Wanted = {
  /** Generation of the policy. */
  readonly policy: number
  /** What the nodes have to do. */
  readonly rollout: number
  /** How often the batches were to start over. */
  readonly resets: number
}

export type Ledger = Wanted & { readonly batch: BatchState }

/** What is to be written, between a LIST and its PUT. */
export type Writing = Write & {
  readonly is: 'writing'
  /** Somebody has written the ledger since the LIST. */
  readonly isOutdated: boolean
  /** Written after it, by a census that does not write everything at once. */
  readonly rest?: Write
}

type Write = {
  readonly ledger: Ledger
  /** Nodes whose results this write counts. */
  readonly counts: readonly number[]
}

export type Census =
  | { readonly is: 'idle' }
  /** It judges these slots with the ledger of a later moment. */
  | { readonly is: 'listed'; readonly nodes: readonly BatchNode[] }
  | Writing

/** How often each of them happens. */
export const noDisturbances = {
  failures: 0,
  retries: 0,
  nodeDeletions: 0,
  ledgerDeletions: 0,
  /** Of the policy. */
  edits: 0,
  /** Other work, and nodes that come back for it once they are complete. */
  rollouts: 0,
  returns: 0,
  resets: 0,
}
export type Disturbances = Readonly<typeof noDisturbances>

export type State = {
  readonly nodes: readonly BatchNode[]
  /** Undefined before the first census, and after a deletion. */
  readonly ledger: Ledger | undefined
  readonly censuses: readonly Census[]
  readonly wanted: Wanted
  /** Nodes that started in the open batch. */
  readonly starts: number
  readonly left: Disturbances
}

export type Config = {
  readonly nodes: number
  readonly censuses: number
  /** Strategy and ceiling of each generation of the policy. */
  readonly policies: readonly { readonly strategy: Strategy; readonly ceiling: number }[]
  readonly disturbances: Disturbances
}

/** What stays the same during one search. */
export type World = { readonly rules: Rules; readonly config: Config }

export const scope = skyhookScope({ name: 's', uid: 'u' }, 'c')
export const identityOf = (who: number) => ({ name: `n${who}`, uid: `n${who}`, bootId: 'boot' })

export const policyOf = ({ config }: World, { wanted }: State): Config['policies'][number] => {
  const policy = config.policies[wanted.policy]
  if (!policy) throw new Error(`no policy ${wanted.policy}`)
  return policy
}

export const isHolding = (node: BatchNode): node is Holding => 'counted' in node

/** Complete, and not for the work of now. */
export const hasReturned = (node: BatchNode, { wanted, left }: State): boolean =>
  node.is === 'done' && wanted.rollout > 0 && left.returns > 0

const phaseOf = { granted: 'working', working: 'working', failed: 'failed', finished: 'finished' } as const

/** What a LIST shows of the nodes. */
export const slotsOf = ({ rules }: World, nodes: readonly BatchNode[]): readonly Slot[] =>
  nodes.flatMap((node, who) => {
    if (!isHolding(node) || (node.is === 'failed' && !rules.keepsFailedSlot)) return []
    const { index, epoch } = node
    return [listedSlot(scope, { index }, identityOf(who), { phase: phaseOf[node.is], epoch })]
  })

/** One disturbance less is left. */
export const spend = ({ left }: State, what: keyof Disturbances): Pick<State, 'left'> => ({
  left: { ...left, [what]: left[what] - 1 },
})
