/** What a simulated node does for one Skyhook, as its host and its Node show it. */
import { cordonKey } from '../../../src/schemas/annotations.ts'
import type { Journal } from '../../../src/schemas/journal.ts'
import { isRunning, type MergedInterrupt } from '../../../src/schemas/package-record.ts'
import type { Taint } from '../../../src/schemas/kubernetes.ts'
import { hasMark } from '../../../src/stages/drain/drain.ts'
import type { NodeObserver, NodeState } from '../../kit/node-simulator/node-state.ts'
import { type Deed, interruptDeed } from '../../kit/plan/deeds.ts'

const skyhook = 's'

/** Records from `start` on. Work under way then counts if it is not stopped: it ends after the plan. */
export class NodeHistory {
  readonly observer: NodeObserver
  #deeds: Deed[] = []
  #isRecording = false
  /** The node was cordoned when the recording started, and nothing has happened since. */
  #isCordonOpen = false
  /** Package and version to the stage that it is in. */
  readonly #stages = new Map<string, string>()
  #wasTainted = false
  #isOvertaken = false
  #isRebootedByOther = false
  /** How many deeds there were before the present decision: what it orders begins at once, the cordon first. */
  #decided = 0

  constructor() {
    this.observer = {
      decided: ({ pods, journal: before }, { actions, journal }) => {
        this.#decided = this.#deeds.length
        const isWaiting =
          actions.some(({ do: what }) => what === 'prepare') || (pods.known && pods.value.pods.length > 0)
        const atWork = atWorkIn(before)
        const isStarted = [...atWorkIn(journal)].some((key) => !atWork.has(key))
        if (this.#isRecording && isWaiting && isStarted) this.#isOvertaken = true
      },
      stepStarts: ({ view, record, stage }) => {
        if (view.metadata.name === skyhook) this.#stage(record.name, record.version, stage)
      },
      // one that ran when the recording started, and was not stopped
      stepEnds: ({ view, record, stage }) => {
        if (view.metadata.name === skyhook) this.#stage(record.name, record.version, stage)
      },
      interruptStarts: ({ interrupt, owners }, { metadata }) => {
        if (metadata.name === skyhook) this.#interrupt(interrupt, owners)
        else if (interrupt.type === 'reboot') this.#isRebootedByOther = true
      },
      published: ({ annotations, taints }) => {
        const mark = annotations[cordonKey(skyhook)]
        if (mark === 'true' && !this.#isCordonOpen && this.#isRecording)
          this.#deeds.splice(this.#decided, 0, { deed: 'drain' })
        if (mark === null) this.#isCordonOpen = false
        if (taints) this.#taint(taints)
      },
    }
  }

  start(node: NodeState): void {
    this.#deeds = []
    this.#decided = 0
    this.#isRecording = true
    this.#isOvertaken = false
    this.#isRebootedByOther = [...node.interrupting.values()].some(
      ({ run, skyhook: owner }) => owner !== skyhook && run.interrupt.type === 'reboot',
    )
    this.#isCordonOpen = hasMark(node.node, skyhook)
    this.#wasTainted = isTainted(node.node.spec?.taints ?? [])
    this.#stages.clear()
    for (const { run, skyhook: owner } of node.interrupting.values())
      if (owner === skyhook) this.#interrupt(run.interrupt, run.owners)
  }

  deeds(node: NodeState): readonly Deed[] {
    if (this.#isCordonOpen && hasMark(node.node, skyhook)) this.#add([])
    return this.#deeds
  }

  /** A stage began while a package waited for its image, or for pods: of a serial Skyhook, too, others go first. */
  get isOvertaken(): boolean {
    return this.#isOvertaken
  }

  /** The host rebooted for another Skyhook: the boot replaces what a package has asked for by then. */
  get isRebootedByOther(): boolean {
    return this.#isRebootedByOther
  }

  #stage(name: string, version: string, stage: string): void {
    const key = `${name}|${version}`
    if (this.#stages.get(key) === stage && this.#isRecording) return
    this.#stages.set(key, stage)
    this.#add([{ deed: 'stage', package: name, version, stage }])
  }

  #interrupt(interrupt: MergedInterrupt, owners: readonly string[]): void {
    const packages = owners.map((key) => key.split('|')[0] ?? key)
    for (const key of owners) this.#stages.delete(key)
    this.#add(interruptDeed(interrupt, packages))
  }

  #taint(taints: readonly Taint[]): void {
    if (isTainted(taints) && !this.#wasTainted) this.#add([{ deed: 'taint' }])
    this.#wasTainted = isTainted(taints)
  }

  #add(deeds: readonly Deed[]): void {
    if (!this.#isRecording) return
    if (this.#isCordonOpen) this.#deeds.push({ deed: 'drain' })
    this.#isCordonOpen = false
    this.#deeds.push(...deeds)
  }
}

/** Packages with their stages. */
const atWorkIn = ({ skyhooks }: Journal): ReadonlySet<string> =>
  new Set(
    Object.values(skyhooks[skyhook]?.packages ?? {})
      .filter(isRunning)
      .map(({ name, version, progress: { stage } }) => `${name}|${version} ${stage}`),
  )

const isTainted = (taints: readonly Taint[]): boolean => taints.some(({ key }) => key === 'skyhook.nvidia.com')
