/** What Argo CD (with our health check), Flux (with our expressions) and kstatus say in each phase. */

export type Health = 'Healthy' | 'Progressing' | 'Degraded' | 'Suspended'
export type KubernetesStatus = 'Current' | 'InProgress' | 'Failed' | 'Terminating' | 'Unknown'

/** For kinds without a health check, Argo CD and Flux have nothing of ours to ask: `-`. */
export type Verdict = readonly [argocd: Health | '-', flux: KubernetesStatus | '-', kstatus: KubernetesStatus]

const done: Verdict = ['Healthy', 'Current', 'Current']
const moving: Verdict = ['Progressing', 'InProgress', 'InProgress']
const held: Verdict = ['Suspended', 'InProgress', 'InProgress']
const stalled: Verdict = ['Degraded', 'Failed', 'Failed']

/** By the name of the fixture. */
export const verdicts: Readonly<Record<string, Verdict>> = {
  fresh: moving,
  working: moving,
  'waiting-for-slot': moving,
  'waiting-for-batch': moving,
  rebooting: moving,
  'between-nodes': moving,
  paused: held,
  disabled: held,
  'failed-once': moving,
  failed: stalled,
  'agents-silent': stalled,
  retrying: stalled,
  'image-missing-at-first': moving,
  'image-missing': stalled,
  blocked: stalled,
  'budget-held-by-failures': stalled,
  'rollout-stopped': stalled,
  'policy-missing': stalled,
  'invalid-spec': stalled,
  complete: done,
  'no-nodes': done,
  edited: moving,
  'edited-and-reverted': moving,
  corrected: moving,
  'node-joined': moving,
  deleting: ['Progressing', 'InProgress', 'Terminating'],
  'deletion-blocked': ['Degraded', 'Failed', 'Terminating'],
  // kstatus takes an object without any status for current: the reason for the default of the definition
  'fresh-without-default': ['Progressing', 'Unknown', 'Current'],
  'deployment-policy': ['-', '-', 'Current'],
}
