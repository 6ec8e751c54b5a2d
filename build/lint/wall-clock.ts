/**
 * Lint rule: the wall clock jumps, so it is read only where a time is published. Code that waits, counts or compares
 * reads `steadyMs` or `monotonicMs` (docs/design/decisions/steady-time.md).
 */
import { type Context, type Node, nameOf, productPath } from './syntax.ts'

/** Who may ask for it, and what for. A folder ends in a slash. */
const publishers: Readonly<Record<string, string>> = {
  'src/schemas/clock.ts': 'turns steady time into published time',
  'src/lease/slots.ts': 'times in Leases',
  'src/lease/slot-creation.ts': 'times in Leases',
  'src/lease/ledger.ts': 'times in Leases',
  'src/lease/election.ts': 'times in Leases; how soon to look at one of others, which only costs requests',
  'src/kube/events.ts': 'times in Events',
  'src/census/reconcile/skyhook-reconciler.ts': 'times in the ledger and in conditions of Skyhooks',
  'src/daemon/executors/publish-interrupt.ts': 'flags and logs on the host',
  'src/daemon/executors/steps/record.ts': 'flags and history on the host',
  'src/cli/': 'ages and times that people read',
  'src/host/fs/journal-file.ts': 'the name of a damaged journal',
  'src/cli/fleet/fleet-view/': 'ages of what others have published',
}

const published = {
  create(context: Context) {
    const file = productPath(context.filename)
    if (!file || Object.keys(publishers).some((publisher) => file.startsWith(publisher))) return {}
    return {
      CallExpression(node: Node) {
        const callee = node['callee'] as Node
        if (nameOf(callee['property']) !== 'wallMs') return
        const instead = 'wait by steadyMs() or monotonicMs(), publish by toWallMs()'
        context.report({ node, message: `the wall clock jumps: ${instead} (build/lint/wall-clock.ts)` })
      },
    }
  },
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'wall-clock' }, rules: { published } }
