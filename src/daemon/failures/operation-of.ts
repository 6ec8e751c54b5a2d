import type { Action } from '../../stages/model/plan.ts'

/** Describes an action as the end of a sentence that starts with `cannot`. */
export function operationOf(action: Action): string {
  switch (action.do) {
    case 'prepare':
      return `prepare ${action.image.image}:${action.image.version}`
    case 'acquireSlot':
      return 'request a slot'
    case 'acquireControlPlaneSlot':
      return "request the control plane's slot"
    case 'createRecoverySlot':
      return 'create the slot of work in progress again'
    case 'confirmSlot':
      return `confirm slot ${action.slot.lease}`
    case 'renewSlot':
      return `renew slot ${action.slot.lease}`
    case 'releaseSlot':
      return `release slot ${action.slot.lease}`
    case 'startStep':
      return `start ${action.attempt.mode} ${action.attempt.path} of package ${action.record.name}`
    case 'stopStep':
      return `stop ${action.step.mode} ${action.step.path}`
    case 'forgetStep':
      return `remove the traces of ${action.step.mode} ${action.step.path}`
    case 'recordStep':
      return `record ${action.step.mode} ${action.step.path} of package ${action.name} on the host`
    case 'recordChecks':
      return `record the results of ${action.mode} on the host`
    case 'recordHistory':
      return `record the history of package ${action.name} on the host`
    case 'cleanUp':
      return `remove the files of package ${action.name}, which is uninstalled`
    case 'readStatus':
      return `read the status file of package ${action.package}`
    case 'evict':
      return `evict pod ${action.pod.metadata.namespace}/${action.pod.metadata.name}`
    case 'countNodes':
      return 'count the nodes'
    case 'interrupt':
      return `carry out the interrupt (${action.run.interrupt.type})`
    case 'recordInterrupt':
      return `record the interrupt (${action.run.interrupt.type}) on the host`
    case 'publish':
      return 'update the Node'
  }
}
