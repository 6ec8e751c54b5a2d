import type { KubeTransport } from '../../kube/transport.ts'
import { type Clock, sleep } from '../../schemas/clock.ts'
import type { EditPlan } from './page-data.ts'

/** Between two nodes of a plan: an answer to somebody else takes several turns of the event loop. */
const planRestMs = 5

export type EditPlanOptions = {
  readonly transport: KubeTransport
  readonly namespace: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** What an apply of a text would do. `of`: what `transport` is. @throws CommandError for what cannot be planned */
export async function planEdit(text: string, options: EditPlanOptions, of: 'cluster' | 'archive'): Promise<EditPlan> {
  const { transport, namespace, clock, signal } = options
  // loaded at its first use: it knows the rules of the resource definitions
  const [{ readManifests }, planFile, { filePlanText }] = await Promise.all([
    import('../dry-run/manifests.ts'),
    of === 'cluster'
      ? import('../dry-run/plan-file.ts').then((module) => module.planFile)
      : import('../dry-run/plan-archived-file.ts').then((module) => module.planArchivedFile),
    import('../dry-run/file-plan-output.ts'),
  ])
  const found = await planFile(readManifests(text, 'the text'), {
    transport,
    namespace,
    clock,
    signal,
    isDelete: false,
    checkEvictions: false,
    betweenNodes: () => sleep(clock, planRestMs, signal),
  })
  return { isRefused: found.isRefused, disrupts: found.disrupts, text: filePlanText(found, 'text') }
}
