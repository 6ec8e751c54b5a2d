/** The answer to a click on a node, from what has been read of it. Pure. */
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { explainNode } from '../explain/explain-node.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import type { NodeDetail } from '../fleet-view/node-detail.ts'
import { notFoundError, refusedError } from '../framework/command-error.ts'
import { publishedPackages } from '../objects/nodes.ts'
import type { NodeAction, NodeAnswer } from './page-data.ts'

export type NodeQuestion = {
  readonly skyhook: Skyhook
  readonly node: KubernetesNode
  readonly detail: NodeDetail
}

/** `here`: a command for the cluster that the page shows. */
export function nodeAnswer(
  fleet: FleetView<KubernetesNode>,
  question: NodeQuestion,
  { actions, here }: { readonly actions: readonly NodeAction[]; readonly here: (command: string) => string },
): NodeAnswer {
  const { skyhook, node } = question
  const packages = [...(publishedPackages(node, skyhook.metadata.name)?.values() ?? [])]
  return {
    nowMs: fleet.takenAtMs,
    explanation: withCommands(explainNode(fleet, question), here),
    packages: packages.map(({ name, version, stage, state, restarts }) => ({ name, version, stage, state, restarts })),
    actions: actions.map(({ what, command }) => ({ what, command: here(command) })),
  }
}

function withCommands(
  explanation: NodeAnswer['explanation'],
  here: (command: string) => string,
): NodeAnswer['explanation'] {
  const changed = <F extends { readonly command: string }>(finding: F): F => ({
    ...finding,
    command: here(finding.command),
  })
  return {
    ...explanation,
    verdict: explanation.verdict && changed(explanation.verdict),
    gates: explanation.gates.map((gate) => ({ ...gate, findings: gate.findings.map(changed) })),
  }
}

/** @throws CommandError for a Skyhook that is not there, or may not be read */
export function skyhookNamed(skyhooks: Known<readonly Skyhook[]>, name: string): Skyhook {
  if (!skyhooks.known) throw refusedError(skyhooks.why)
  const found = skyhooks.value.find(({ metadata }) => metadata.name === name)
  if (found === undefined) throw notFoundError(`there is no Skyhook ${name}`, 'kubectl get skyhooks')
  return found
}
