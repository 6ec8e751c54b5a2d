import { type Journal, emptyJournal } from '../../../src/schemas/journal.ts'
import type { InterruptRun } from '../../../src/schemas/package-record.ts'
import type { StatusReadResult } from '../../../src/schemas/package-status.ts'
import type { KubernetesNode, NodePatch } from '../../../src/schemas/kubernetes.ts'
import type { PackageConfig } from '../../../src/schemas/package-config.ts'
import type { Plan, StageEvent, StartStep, TimedReason } from '../../../src/stages/model/plan.ts'
import type { Pod, PodWatch } from '../../../src/stages/model/pods.ts'
import {
  noOtherOperator,
  type AttemptObservation,
  type Eviction,
  type Failure,
  type InterruptObservation,
  type CleanUpResult,
  type OwnSlot,
  type Preparation,
  type ShutdownObservation,
  type SkyhookView,
  type SlotDenial,
  type EvictedOwner,
  type Snapshot,
  known,
  unknown,
} from '../../../src/stages/model/snapshot.ts'

/** Hears of every effect just before it happens. */
export type NodeObserver = {
  decided?(snapshot: Snapshot, plan: Plan): void
  stepStarts?(action: StartStep, snapshot: Snapshot): void
  stepEnds?(action: StartStep, succeeded: boolean): void
  interruptStarts?(run: InterruptRun, view: SkyhookView): void
  interruptEnds?(run: InterruptRun, skyhook: string): void
  slotReleased?(slot: OwnSlot): void
  published?(patch: NodePatch): void
  booted?(): void
}

/**
 * What a host, a cluster and an agent's memory hold of one node. The fields are grouped by what loses them: a power
 * cut, nothing, or the end of the agent (`NodeSimulator.restartAgent`).
 */
export class NodeState {
  nowMs = 1_000_000
  wallOffsetMs = 0

  // The host.
  bootId = 'boot-1'
  journal: Journal = emptyJournal('node-uid')
  /** Steps that were started and not recorded. */
  readonly attempts = new Map<string, AttemptObservation>()
  /** Configuration in the copy dirs of packages, by their names. */
  readonly copyDirs = new Map<string, Readonly<Record<string, string>>>()
  /** Interrupts that the host accepted and has not finished. */
  readonly interrupting = new Map<string, { readonly run: InterruptRun; readonly skyhook: string }>()
  /** What packages wrote about themselves, by `<skyhook>/<package>`. */
  readonly statusFiles = new Map<string, StatusReadResult>()
  hostFolders: ReadonlySet<string> = new Set()
  otherOperator = noOtherOperator
  rolledOutConfigs: Snapshot['rolledOutConfigs'] = new Map()
  host: Snapshot['host'] = { state: 'usable' }
  rebootBarrier: string | undefined

  // The cluster.
  node: KubernetesNode
  readonly views = new Map<string, SkyhookView>()
  /** Leases that this node knows of; what may be done under them only the agent knows. */
  slots: OwnSlot[] = []
  /** By uid: they are gone, and only the answer to the next write will tell. */
  readonly lostLeases = new Set<string>()
  pods: Pod[] = []
  /** A write of the Node was not answered. */
  isNodeInDoubt = false
  /** The watch of the Skyhooks is broken. */
  areSkyhooksInDoubt = false
  /** The first LIST of the pods is not answered yet. */
  arePodsUnknown = false

  // The agent's memory.
  lastPlan: Plan | undefined
  lastReasons: ReadonlyMap<string, TimedReason> = new Map()
  readonly preparations = new Map<string, Preparation>()
  readonly slotDenials = new Map<string, SlotDenial>()
  readonly requestedStatuses = new Map<string, StatusReadResult>()
  readonly cleanUps = new Map<string, CleanUpResult>()
  readonly evictions = new Map<string, Eviction>()
  readonly failures = new Map<string, Failure>()
  readonly interrupts = new Map<string, InterruptObservation>()
  podWatch: PodWatch = 'no'
  /** How many Nodes the cluster has. */
  clusterSize = 1
  nodeCount: Snapshot['nodeCount']
  readonly evictedOwners = new Map<string, EvictedOwner>()
  hasReadStatuses = false
  reapplyOnReboot = false
  ignoreNodeWright = false

  // What the test arranges.
  /** Exit code per `<package> <mode>` or per package; absent = 0. */
  readonly exitCodes = new Map<string, number>()
  /** Exit code of a step by what it runs with; asked before `exitCodes`. */
  exitCodeOf: (action: StartStep) => number | undefined = () => undefined
  /** Services that do not restart. */
  readonly failingServices = new Set<string>()
  /** Packages whose steps keep running until `finishHanging`. */
  readonly hangingPackages = new Set<string>()
  /** systemd runs the steps of these packages, and has not answered yet that it started them. */
  readonly unansweredPackages = new Set<string>()
  /** Why the host can start no step now. */
  startBlocker: string | undefined
  /** Package contents, or why the image cannot be pulled, by `<image>:<version>`. */
  readonly images = new Map<string, PackageConfig | string>()
  /** Of images that the registry has, by `<image>:<version>`: what is in them is no package. */
  readonly brokenLayers = new Set<string>()
  /** Layers are on their way and do not arrive. */
  areLayersSlow = false
  /** Images on the host, by `<image>:<version>`, in the order in which they came. */
  readonly fetchedImages: string[] = []
  /** Variables whose reference does not exist. */
  readonly missingReferences = new Set<string>()
  /** Skyhooks for whose slots other nodes come first. */
  readonly distantSkyhooks = new Set<string>()
  areSlotsGranted = true
  /** As others where it is undefined. */
  areJoiningSlotsGranted: boolean | undefined
  /** Else the budget of the moment takes back what is to be confirmed. */
  areSlotsConfirmed = true
  /** Else another node of the control plane is out of service. */
  isControlPlaneFree = true
  /** The agent reads the status files after each round. */
  readsStatuses = true
  /** What the next interrupts answer, by type; absent = they are carried out. */
  readonly interruptAnswers = new Map<string, InterruptObservation>()
  /** What the host says about a shutdown while a requested reboot is waited for. */
  shutdown: ShutdownObservation['progress'] = 'none'
  /** Names of pods that refuse eviction. */
  readonly refusingPods = new Set<string>()
  /** Why what uninstalls leave behind cannot be removed. */
  cleanUpError: string | undefined
  /** How long the API server takes for a write. */
  answerMs = 0
  /** Changes of the Node are on their way and not there yet. */
  arePatchesDelayed = false

  // What happened.
  readonly events: StageEvent[] = []
  /** Every step that ran, in order: `<package> <mode> <path>`. */
  readonly executedSteps: string[] = []
  /** Why no interrupt can be carried out, nor say how it went. */
  interruptBlocker: string | undefined
  /** Every interrupt that was carried out, in order. */
  readonly executedInterrupts: string[] = []
  readonly evictedPods: string[] = []
  patches = 0

  /** Steps that were started, by their id. */
  readonly startedSteps = new Map<string, StartStep>()
  /** Of these: they run until `finishHanging`. */
  readonly hangingSteps = new Set<string>()
  readonly requestedInterrupts = new Set<string>()
  readonly terminatingPods = new Set<string>()
  /** Leases that ever were: their uids differ. */
  leases = 0

  readonly observer: NodeObserver

  constructor(labels: Record<string, string> = {}, observer: NodeObserver = {}) {
    this.observer = observer
    this.node = {
      metadata: { name: 'node-1', uid: 'node-uid', resourceVersion: '1', labels, annotations: {} },
      spec: {},
      status: { conditions: [] },
    }
    this.reportReady()
  }

  reportReady(status: 'True' | 'False' = 'True'): void {
    const others = (this.node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready')
    this.node = {
      ...this.node,
      status: {
        ...this.node.status,
        conditions: [...others, { type: 'Ready', status }],
        nodeInfo: { bootID: this.bootId },
      },
    }
  }

  snapshot(): Snapshot {
    return {
      nowMs: this.nowMs,
      wallOffsetMs: this.wallOffsetMs,
      answerMs: this.answerMs,
      bootId: this.bootId,
      node: this.node,
      skyhooks: known([...this.views.values()]),
      journal: this.journal,
      attempts: new Map(this.attempts),
      preparations: new Map(this.preparations),
      slots: known([...this.slots]),
      slotDenials: new Map(this.slotDenials),
      distantSkyhooks: new Set(this.distantSkyhooks),
      host: this.host,
      rebootBarrier: this.rebootBarrier,
      isNodeInDoubt: this.isNodeInDoubt,
      areSkyhooksInDoubt: this.areSkyhooksInDoubt,
      pods:
        this.podWatch === 'no' || this.arePodsUnknown
          ? unknown('not followed')
          : known({ pods: [...this.pods], since: this.podWatch }),
      nodeCount: this.nodeCount,
      evictedOwners: new Map(this.evictedOwners),
      evictions: new Map(this.evictions),
      hostFolders: this.hostFolders,
      otherOperator: this.otherOperator,
      rolledOutConfigs: this.rolledOutConfigs,
      statuses: this.hasReadStatuses ? known(new Map(this.statusFiles)) : unknown('not looked yet'),
      requestedStatuses: new Map(this.requestedStatuses),
      cleanUps: new Map(this.cleanUps),
      failures: new Map(this.failures),
      interrupts: new Map(this.interrupts),
      settings: {
        runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
        skipNamespaces: ['kube-system'],
        reapplyOnReboot: this.reapplyOnReboot,
        ignoreNodeWright: this.ignoreNodeWright,
      },
    }
  }
}
