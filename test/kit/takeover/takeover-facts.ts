/** A recorded moment as `kubectl skyhook doctor --takeover` reads it from a cluster. */
import { configMapOf, packagePodOf } from '../../../src/cli/doctor/read/read-takeover.ts'
import type { FindingId } from '../../../src/cli/doctor/finding.ts'
import type { OperatorSkyhook, TakeoverFacts } from '../../../src/cli/doctor/takeover/facts.ts'
import type { KubeObject } from '../../../src/kube/objects.ts'
import { known } from '../../../src/stages/model/snapshot.ts'
import type { Moment } from './moments.ts'

/** The operator is stopped, its webhooks are deleted, no Helm release has the definitions, and NodeWright never ran. */
export function factsOf({ nodes, skyhooks, pods, configMaps }: Moment): TakeoverFacts {
  const objects = <T>(list: readonly unknown[], read: (object: KubeObject) => T | undefined): readonly T[] =>
    list.flatMap((object) => read(object as KubeObject) ?? [])
  return {
    skyhooks: known(skyhooks as readonly OperatorSkyhook[]),
    nodes: known(nodes),
    pods: known(objects(pods, packagePodOf)),
    configMaps: known(objects(configMaps, configMapOf)),
    deployments: known([{ namespace: 'skyhook', name: 'skyhook-operator-controller-manager', replicas: 0 }]),
    webhooks: known([]),
    definitions: known([]),
    agents: known([]),
    nodeWright: { isServed: known(false), objects: known([]), jobs: known([]) },
  }
}

/** Its package pods have ended by themselves. */
export const withEndedPods = (facts: TakeoverFacts): TakeoverFacts => ({
  ...facts,
  pods: facts.pods.known ? known(facts.pods.value.map((pod) => ({ ...pod, state: 'ended' as const }))) : facts.pods,
})

/** What `--takeover` alone can find. */
export const takeoverFindings: readonly FindingId[] = [
  'stage-repeated',
  'journal-outdated',
  'nodewright-served',
  'nodewright-duplicate',
  'nodewright-state',
  'nodewright-job',
  'operator-running',
  'operator-webhook',
  'package-pod-running',
  'package-pod-failing',
  'package-pod-ended',
  'cordon-of-person',
  'deletion-pending',
  'state-of-deleted',
  'operator-release',
]
