import type { StartStep } from '../../src/stages/model/plan.ts'
import { type Decide, NodeSimulator } from '../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../kit/node-simulator/node-state.ts'

export type { Decide }

export type Disturbance = {
  /** The agent (or the host) crashes after this many actions; absent = after all of them. */
  readonly crashAfterActions?: number
  /** The agent carries out actions concurrently: any order may happen. */
  readonly reversed?: boolean
  /** Someone else wrote the Node in between, so the patch is refused. */
  readonly conflict?: boolean
}

/** A node on which anything may happen between any two effects: its steps, interrupts and evictions take time. */
export class FaultyNode extends NodeSimulator {
  /** Packages that require an interrupt when their config ends. */
  readonly requiringPackages = new Set<string>()

  constructor(decide: Decide, observer: NodeObserver) {
    super({ pool: 'x' }, { decide, observer, takesTime: true })
  }

  /** One round of the agent's loop. True when anything changed. */
  reconcile({ crashAfterActions, reversed = false, conflict = false }: Disturbance = {}): boolean {
    this.nowMs++
    return this.step((actions) =>
      (reversed ? actions.toReversed() : actions)
        .slice(0, crashAfterActions)
        .filter((action) => !conflict || action.do !== 'publish'),
    )
  }

  /** The host requests a run of a package that has written a status before. */
  requestRun(skyhook: string, name: string): void {
    const file = this.statusFiles.get(`${skyhook}/${name}`)
    if (file?.state !== 'read') return
    const status = { ...file.status, bootId: this.bootId, requests: { ...file.status.requests, run: true } }
    this.statusFiles.set(`${skyhook}/${name}`, { state: 'read', status, writtenAtMs: this.nowMs })
  }

  label(key: string, value: string | undefined): void {
    const labels = { ...this.node.metadata.labels }
    if (value === undefined) delete labels[key]
    else labels[key] = value
    this.node = { ...this.node, metadata: { ...this.node.metadata, labels } }
  }

  setUnschedulable(unschedulable: boolean): void {
    this.node = { ...this.node, spec: { ...this.node.spec, unschedulable } }
  }

  protected override stepEnded(action: StartStep, succeeded: boolean): void {
    if (action.attempt.mode === 'config') this.#writeStatus(action)
    super.stepEnded(action, succeeded)
  }

  #writeStatus({ view, record: { name } }: StartStep): void {
    const requests = { run: false, interrupt: this.requiringPackages.has(name) }
    const status = { bootId: this.bootId, message: '', requests }
    this.statusFiles.set(`${view.metadata.name}/${name}`, { state: 'read', status, writtenAtMs: this.nowMs })
  }
}
