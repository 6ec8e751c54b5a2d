import type { EventRecorder } from '../../kube/events.ts'
import type { StageEvent, TimedReason } from '../../stages/model/plan.ts'
import { eventTypeOf, type NodeEventReason } from '../../schemas/catalogue/events.ts'
import { isReportedOn, reasonReportDelayMs, type ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Log } from './log.ts'

export type EventReporter = {
  /** What a decision found: `reasons` by Skyhook, all that hold now. */
  report(events: readonly StageEvent[], reasons: ReadonlyMap<string, TimedReason>): void
  /** Age in seconds of the oldest present reason of each kind. */
  reasonAges(): ReadonlyMap<ReasonName, number>
}

/**
 * One fact, told once: a log line always, a Kubernetes Event on the Node where a person would look for it.
 * `findCordoner` names the other writer of a cordon, as far as it can be known; it never rejects.
 */
export function createEventReporter(options: {
  readonly clock: Clock
  readonly log: Log
  readonly recorder: Pick<EventRecorder, 'record'>
  readonly node: () => KubernetesNode | undefined
  readonly findCordoner: () => Promise<string | undefined>
}): EventReporter {
  const { clock, log, recorder, findCordoner } = options
  const reportedReasons = new Map<string, string>()
  let presentReasons: ReadonlyMap<string, TimedReason> = new Map()

  /** Without a Node there is nothing to record an Event on. */
  function record(reason: NodeEventReason, message: string): void {
    const node = options.node()
    if (!node) return
    const { name, uid } = node.metadata
    const regarding = { apiVersion: 'v1', kind: 'Node', name, uid }
    recorder.record({ regarding, type: eventTypeOf(reason), reason, message })
  }

  function reportEvent(event: StageEvent): void {
    const { type: _, skyhook, ...fields } = event
    // `message` is the key of the line's own words: two keys of one name, and each reader takes another
    const line =
      'message' in fields ? { skyhook, ...fields, message: undefined, detail: fields.message } : { skyhook, ...fields }
    switch (event.type) {
      case 'began':
        log.info(line, 'work started')
        return record('SkyhookStarted', `Skyhook ${skyhook} starts on this node`)
      case 'completed':
        log.info(line, 'complete')
        return record('SkyhookCompleted', `Skyhook ${skyhook} is complete on this node`)
      case 'stageCompleted':
        return log.info(line, 'stage completed')
      case 'stageFailed':
        log.warn(line, 'stage failed')
        return record(event.reason, `Skyhook ${skyhook}, package ${event.package}: ${event.message}`)
      case 'stepUnknown':
        log.warn(line, 'step outcome unknown, repeating the step')
        return record(
          'StepOutcomeUnknown',
          `Skyhook ${skyhook}, package ${event.package}: the outcome of ${event.step} is unknown (${event.detail}); repeating it`,
        )
      case 'superseded':
        return log.info(line, 'stage restarts with the changed spec')
      case 'interrupted':
        log.info(line, 'interrupt completed')
        return record('InterruptCompleted', `Skyhook ${skyhook}: ${event.interrupt}`)
      case 'interruptRequired':
        log.info(line, 'package requires its interrupt')
        return record(
          'InterruptRequired',
          `Skyhook ${skyhook}, package ${event.package} needs its interrupt: ${event.message}`,
        )
      case 'cordonChangedExternally':
        log.warn(line, 'someone else changed the cordon of a node that we hold')
        if (!event.unschedulable)
          return record('CordonChanged', `someone uncordoned the node while Skyhook ${skyhook} holds it`) // nobody records who
        return void findCordoner().then((manager) =>
          record(
            'CordonChanged',
            `the node was cordoned by ${manager ?? 'someone else'} while Skyhook ${skyhook} holds it`,
          ),
        )
      case 'reset':
        log.info(line, 'annotation removed, all packages run again')
        return record('SkyhookReset', `Skyhook ${skyhook} was reset on this node; all packages run again`)
      case 'edited':
        log.info(line, 'annotation edited, package runs again')
        return record(
          'PackageRerun',
          `Skyhook ${skyhook}, package ${event.package}runs again after an edit of the annotation`,
        )
      case 'editIgnored':
        log.warn(line, 'annotation edit ignored')
        return record('EditIgnored', `Skyhook ${skyhook}: ${event.message}`)
      case 'republished':
        return log.info(line, 'published state restored')
      case 'startedOver':
        log.warn(line, 'host has no journal of the work that the Node shows, all packages run again')
        return record(
          'HostStateLost',
          `Skyhook ${skyhook}: the host has no journal of the work that the Node shows; all packages run again`,
        )
      case 'adopted':
        log.info(line, 'adopted the work of the operator')
        return record('OperatorWorkAdopted', `Skyhook ${skyhook}: adopted the work of the operator on this node`)
      case 'rebootNotRepeated':
        log.info(line, 'reboot skipped: the host rebooted for this spec before its disk was lost')
        return record(
          'RebootSkipped',
          `Skyhook ${skyhook}: the host already rebooted for this spec before it lost its disk; it does not reboot again`,
        )
      case 'orphaned':
        return log.info(line, 'Skyhook deleted without uninstall, its files stay on the host')
    }
  }

  function reportReasons(reasons: ReadonlyMap<string, TimedReason>): void {
    for (const name of reportedReasons.keys()) if (!reasons.has(name)) reportedReasons.delete(name)
    for (const [skyhook, { reason, message, sinceMs }] of reasons) {
      const text = `${reason}: ${message}`
      if (reportedReasons.get(skyhook) === text) continue
      if (clock.wallMs() - sinceMs < reasonReportDelayMs) continue // passes by
      reportedReasons.set(skyhook, text)
      if (!isReportedOn('Node', reason)) log.debug({ skyhook, reason, detail: message }, 'waiting')
      else {
        log.info({ skyhook, reason, detail: message }, 'not complete')
        if (reason !== 'StepFailed' && reason !== 'CheckFailed') {
          record(reason, `Skyhook ${skyhook}: ${message}`)
        }
      }
    }
  }

  return {
    report(events, reasons) {
      presentReasons = reasons
      for (const event of events) reportEvent(event)
      reportReasons(reasons)
    },
    reasonAges() {
      const nowMs = clock.wallMs()
      const ages = new Map<ReasonName, number>()
      for (const { reason, sinceMs } of presentReasons.values())
        ages.set(reason, Math.max(ages.get(reason) ?? 0, (nowMs - sinceMs) / 1000))
      return ages
    },
  }
}
