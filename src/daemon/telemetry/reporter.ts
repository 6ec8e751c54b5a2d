import { eventCodeKey, eventPackageKey, nodeStateKey } from '../../schemas/annotations.ts'
import type { EventRecorder } from '../../kube/events.ts'
import type { StageEvent, TimedReason } from '../../stages/model/plan.ts'
import { eventTypeOf, type NodeEventReason } from '../../schemas/catalogue/events.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import { isReportedOn, reasonReportDelayMs } from '../../schemas/catalogue/reason.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Log } from './log.ts'

export type EventReporter = {
  /** Reports the results of a decision; `reasons` are all current reasons, by Skyhook. */
  report(events: readonly StageEvent[], reasons: ReadonlyMap<string, TimedReason>): void
  /** The agent deleted this pod (namespace/name) in spite of its disruption budget. */
  podDeleted(pod: string): void
  /** Age in seconds of the oldest current reason of each kind. */
  reasonAges(): ReadonlyMap<ReasonName, number>
}

/**
 * Reports each fact once: always as a log line, and as an Event on the Node if people look for it there. `findCordoner`
 * names the other writer of a cordon if it can be known. It never rejects.
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
  let currentReasons: ReadonlyMap<string, TimedReason> = new Map()

  /** Without a Node, no Event can be recorded. */
  function record(reason: NodeEventReason, message: string, annotations?: Readonly<Record<string, string>>): void {
    const node = options.node()
    if (!node) return
    const { name, uid } = node.metadata
    const regarding = { apiVersion: 'v1', kind: 'Node', name, uid }
    recorder.record({ regarding, type: eventTypeOf(reason), reason, message, ...(annotations && { annotations }) })
  }

  function reportEvent(event: StageEvent): void {
    const { skyhook } = event
    // `message` is the key of the line's own text: with a duplicate key, readers would take either value
    const detail = 'message' in event ? { detail: event.message } : {}
    const line = { ...event, type: undefined, message: undefined, ...detail }
    const subject = 'package' in event ? `Skyhook ${skyhook}, package ${event.package}` : `Skyhook ${skyhook}`
    switch (event.type) {
      case 'began':
        log.info(line, 'work started')
        return record('SkyhookStarted', `${subject} starts on this node`)
      case 'completed':
        log.info(line, 'complete')
        return record('SkyhookCompleted', `${subject} is complete on this node`)
      case 'foundComplete':
        log.info(line, 'complete from an earlier Skyhook of this name, nothing runs')
        return record(
          'SkyhookFoundComplete',
          `${subject} is complete on this node from before it was created; nothing runs. To run its packages again: ` +
            `kubectl annotate node ${options.node()?.metadata.name} ${nodeStateKey(skyhook)}-`,
        )
      case 'stageCompleted':
        return log.info(line, 'stage completed')
      case 'stageFailed':
        log.warn(line, 'stage failed')
        return record(event.reason, `${subject}: ${event.message}`)
      case 'uninstallFailed':
        log.warn(line, 'uninstall failed repeatedly, leaving the rest of the package on the host')
        return record('UninstallFailed', `${subject} is not uninstalled, its rest stays on the host: ${event.message}`)
      case 'stepUnknown':
        log.warn(line, 'step outcome unknown, repeating the step')
        return record(
          'StepOutcomeUnknown',
          `${subject}: the outcome of ${event.step} is unknown (${event.detail}); repeating it`,
        )
      case 'superseded':
        return log.info(line, 'stage restarts with the changed spec')
      case 'interrupted':
        log.info(line, 'interrupt completed')
        return record('InterruptCompleted', `${subject}: ${event.interrupt}`)
      case 'interruptRequired':
        log.info(line, 'package requires its interrupt')
        return record('InterruptRequired', `${subject} needs its interrupt: ${event.message}`)
      case 'cordonChangedExternally':
        log.warn(line, 'another client changed the cordon of a node that this agent holds')
        if (!event.unschedulable)
          // the API does not record the user
          return record('CordonChanged', `someone uncordoned the node while ${subject} holds it`)
        return void findCordoner().then((manager = 'someone else') =>
          record('CordonChanged', `the node was cordoned by ${manager} while ${subject} holds it`),
        )
      case 'reset':
        log.info(line, 'annotation removed, all packages run again')
        return record('SkyhookReset', `${subject} was reset on this node; all packages run again`)
      case 'edited':
        log.info(line, 'annotation edited, package runs again')
        return record('PackageRerun', `${subject} runs again after an edit of the annotation`)
      case 'editIgnored':
        log.warn(line, 'annotation edit ignored')
        return record('EditIgnored', `${subject}: ${event.message}`)
      case 'republished':
        return log.info(line, 'published state restored')
      case 'startedOver':
        log.warn(line, 'host has no journal of the work that the Node shows, all packages run again')
        return record(
          'HostStateLost',
          `${subject}: the host has no journal of the work that the Node shows; all packages run again`,
        )
      case 'adopted':
        log.info(line, 'adopted the work of the operator')
        return record('OperatorWorkAdopted', `${subject}: adopted the work of the operator on this node`)
      case 'rebootNotRepeated':
        log.info(line, 'reboot skipped: the host rebooted for this spec before its disk was lost')
        return record(
          'RebootSkipped',
          `${subject}: the host already rebooted for this spec before it lost its disk; it does not reboot again`,
        )
      case 'orphaned':
        return event.leavesFiles
          ? log.info(line, 'Skyhook deleted without uninstall, its files stay on the host')
          : log.info(line, 'Skyhook deleted, nothing of its packages stays on the host')
    }
  }

  function reportReasons(reasons: ReadonlyMap<string, TimedReason>): void {
    for (const name of reportedReasons.keys()) if (!reasons.has(name)) reportedReasons.delete(name)
    for (const [skyhook, timed] of reasons) {
      const { reason, message, sinceMs } = timed
      const text = `${reason}: ${message}`
      if (reportedReasons.get(skyhook) === text) continue
      if (clock.steadyMs() - sinceMs < reasonReportDelayMs) continue // may still pass
      reportedReasons.set(skyhook, text)
      if (!isReportedOn('Node', reason)) log.debug({ skyhook, reason, detail: message }, 'waiting')
      else {
        log.info({ skyhook, reason, detail: message }, 'not complete')
        // the failed stage reports it
        const isReported = reason === 'StepFailed' || reason === 'CheckFailed' || reason === 'RebootRefused'
        if (!isReported) record(reason, `Skyhook ${skyhook}: ${message}`, subjectOf(timed))
      }
    }
  }

  return {
    podDeleted(pod) {
      log.warn({ pod }, 'pod deleted after the timeout of spec.drain')
      record('PodDeleted', `pod ${pod} deleted after the timeout of spec.drain`)
    },
    report(events, reasons) {
      currentReasons = reasons
      for (const event of events) reportEvent(event)
      reportReasons(reasons)
    },
    reasonAges() {
      const nowMs = clock.steadyMs()
      const ages = new Map<ReasonName, number>()
      for (const { reason, sinceMs, failingSinceMs = sinceMs } of currentReasons.values())
        ages.set(reason, Math.max(ages.get(reason) ?? 0, (nowMs - failingSinceMs) / 1000))
      return ages
    },
  }
}

/** The subject of the reason, for programs; undefined if it has none. */
function subjectOf({ code, package: key }: TimedReason): Readonly<Record<string, string>> | undefined {
  const subject = { ...(code && { [eventCodeKey]: code }), ...(key !== undefined && { [eventPackageKey]: key }) }
  return Object.keys(subject).length > 0 ? subject : undefined
}
