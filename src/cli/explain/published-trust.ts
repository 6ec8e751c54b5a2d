/** Whether what a Node publishes of a Skyhook is from its agent, of this Node, and not edited since. Pure. */
import { journalKey } from '../../schemas/annotations.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Published } from '../../schemas/published.ts'
import { known, type Known, unknown } from '../../stages/model/snapshot.ts'

export function trustIn({ metadata }: KubernetesNode, name: string, { origin, state }: Published): Known<true> {
  switch (origin) {
    case 'agent':
    case 'nobody':
      return known(true)
    case 'unsigned':
      return unknown(
        metadata.annotations?.[journalKey(name)] === undefined
          ? `the annotation journal_${name} is missing: no agent has written nodeState_${name}`
          : `the annotation journal_${name} cannot be read`,
      )
    case 'edited': {
      const edit = state === undefined ? 'removed' : 'edited'
      return unknown(`someone ${edit} the annotation nodeState_${name}, and the agent has not answered`)
    }
    case 'former-node':
      return unknown('the state is of an earlier registration of this Node')
  }
}
