/** Every series that an agent serves of its own node. `make generate` writes docs/usage/metrics.md from it. */
import { checkOf, stagesWithSteps } from '../package-config.ts'
import { slotPhases } from '../skyhook.ts'

export type MetricRow = {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /**
   * Values of each label, as a list or a description. Labels of an agent's own series have closed sets: no package,
   * Skyhook or node.
   */
  readonly labels: Readonly<Record<string, readonly string[] | string>>
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[]
}

export const everyReason = 'every [reason](reasons.md)'

const modes = stagesWithSteps.flatMap((stage) => [stage, checkOf(stage)])

type Labels = MetricRow['labels']

export const gauge = <const L extends Labels>(help: string, labels: L) => ({ type: 'gauge', help, labels }) as const
const counter = <const L extends Labels>(help: string, labels: L) => ({ type: 'counter', help, labels }) as const
const histogram = <const L extends Labels>(help: string, labels: L, buckets: readonly number[]) =>
  ({ type: 'histogram', help, labels, buckets }) as const

export const metrics = {
  skyhookd_build_info: gauge('Version of the agent; the value is always 1.', { version: 'the version' }),
  skyhookd_slots: gauge('Slots that this node holds. The sum over the fleet is the number of nodes at work.', {
    slot_kind: ['slot', 'unlimited', 'recovery', 'bootstrap', 'control-plane', 'other'],
    phase: slotPhases,
  }),
  skyhookd_slot_age_seconds: gauge(
    'Time since this node was granted the oldest slot that it holds, by its Lease; 0 without one.',
    {},
  ),
  skyhookd_slot_wait_duration_seconds: histogram(
    'Time from the first request for a slot to its grant.',
    {},
    [0.1, 1, 5, 30, 120, 600, 3600],
  ),
  skyhookd_slot_hold_duration_seconds: histogram(
    'Time that this node held a slot, by its last phase.',
    { phase: slotPhases },
    [0.5, 1, 5, 30, 120, 600, 3600],
  ),
  skyhookd_evictions_total: counter(
    'Requests to evict a pod from this node: `evicted`, `blocked` by a disruption budget or by admission, `gone` ' +
      'before the request, `deleted` after the timeout of `spec.drain`, or `failed`.',
    { result: ['evicted', 'blocked', 'gone', 'deleted', 'failed'] },
  ),
  skyhookd_drain_blocked_seconds: gauge(
    'Time for which the drain of this node has had the reason `DrainBlocked`; 0 if it has not.',
    {},
  ),
  skyhookd_reboots_total: counter(
    'Reboots of this host for packages: `made`, counted on the host itself and also by the agent that starts after ' +
      'the reboot; and requests that were `refused`.',
    { result: ['made', 'refused'] },
  ),
  skyhookd_step_duration_seconds: histogram(
    'Duration of package steps, by mode (`stage`) and result.',
    {
      stage: modes,
      result: ['ok', 'failed', 'skipped'],
    },
    [0.1, 1, 5, 30, 120, 600, 3600],
  ),
  skyhookd_reason_age_seconds: gauge('Age of the oldest current reason of each kind; absent when there is none.', {
    reason: everyReason,
  }),
  skyhookd_running_step_age_seconds: gauge(
    'Age of the oldest step that runs, by mode (`stage`); absent where none runs.',
    { stage: modes },
  ),
  skyhookd_failed_attempts: gauge(
    'Failed attempts in a row of the stage that has failed most often on this node; 0 without a failure.',
    {},
  ),
  skyhookd_next_attempt_seconds: gauge(
    'Time until a stage that has failed is tried again; 0 where none waits for that.',
    {},
  ),
  skyhookd_package_requests: gauge('Packages whose status file requests a run of config or an interrupt.', {
    kind: ['run', 'interrupt'],
  }),
  skyhookd_census_leader: gauge(
    '1 on the elected agent if its census has counted for the cluster within the last minute, else 0.',
    {},
  ),
  skyhookd_reflector_age_seconds: gauge(
    'Time since the API server last confirmed that a watched collection is up to date.',
    { kind: ['nodes', 'skyhooks'] },
  ),
  skyhookd_decision_failures_total: counter(
    'Decisions that ended with an internal error; see the reason `InternalError` and the log.',
    {},
  ),
  skyhookd_action_errors_total: counter(
    'Actions that ended with an internal error; see the reason `InternalError` and the log. Failures with a ' +
      'reason of their own do not count.',
    {},
  ),
  skyhookd_api_requests_total: counter('Requests to the API server; code 0 means no answer.', {
    verb: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'WATCH'],
    code: 'the HTTP status code',
  }),
} as const satisfies Record<string, MetricRow>

export type MetricName = keyof typeof metrics
/** Names of all series of a type. */
export type MetricNameOf<Type extends MetricRow['type']> = {
  [Name in MetricName]: (typeof metrics)[Name]['type'] extends Type ? Name : never
}[MetricName]
export type LabelsOf<Name extends MetricName> = Readonly<Record<keyof (typeof metrics)[Name]['labels'], string>>
