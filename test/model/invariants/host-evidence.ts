import type { Journal } from '../../../src/schemas/journal.ts'
import { attemptOf, type PackageRecord } from '../../../src/schemas/package-record.ts'
import { matchesGlob } from '../../../src/schemas/selectors.ts'
import type { EnvVar, PackageSpec } from '../../../src/schemas/skyhook.ts'
import { pendingIfRequired } from '../../../src/stages/interrupt/pending.ts'
import type { Plan, StartStep } from '../../../src/stages/model/plan.ts'
import type { SkyhookView, Snapshot } from '../../../src/stages/model/snapshot.ts'
import type { Decide } from '../../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../../kit/node-simulator/node-state.ts'
import type { FaultyNode } from '../faulty-node.ts'

/** What is on the host of one package because its steps ran there. */
type HostState = {
  version: string
  /** The stage that ran last; with `…` while its check has not passed. */
  stage: string
  config: Readonly<Record<string, string>>
  env: readonly EnvVar[]
  configured: boolean
  /** A person had the journal forget it: what is not in the spec then stays on the host. */
  forgotten?: boolean
  /** An interrupt must run before this counts as complete: keys changed under a config that had begun. */
  pendingInterrupt: boolean
  /** Of the work that ran last. */
  generation: number | undefined
  /** Neither complete nor interrupted since its apply or upgrade began: the spec's interrupt is still pending. */
  installing: boolean
  /** Boot in which the package required an interrupt that the spec leaves to it. */
  requiredInBoot?: string | undefined
}

const finalStages = new Set(['config', 'post-interrupt'])

/** Records what steps, interrupts and boots did to the host, whatever a journal says: the measure of all claims. */
export class HostEvidence implements NodeObserver {
  /** By `<skyhook>/<package>`, as are the others. */
  readonly host = new Map<string, HostState>()
  /** The part of the spec for which a package was complete. */
  readonly completed = new Map<string, string>()
  readonly requestedRuns = new Set<string>()
  readonly node: FaultyNode
  readonly decide: Decide
  #journalBefore: Journal | undefined

  constructor(node: FaultyNode, decide: Decide) {
    this.node = node
    this.decide = decide
  }

  /** What people do on purpose is a reason to run again. */
  forgetCompletion(skyhook: string): void {
    for (const key of this.completed.keys()) if (key.startsWith(`${skyhook}/`)) this.completed.delete(key)
    for (const [key, hostState] of this.host) if (key.startsWith(`${skyhook}/`)) hostState.forgotten = true
  }

  readonly keyOf = ({ view, record }: StartStep): string => `${view.metadata.name}/${record.name}`

  /** What people wrote, whatever the decision was made from. */
  readonly viewOf = ({ view }: StartStep): SkyhookView => this.node.views.get(view.metadata.name) ?? view

  /** The very first step of an apply or upgrade of a package that was whole before. */
  readonly beginsChange = ({ view, record, stage }: StartStep): boolean => {
    const before = this.#journalBefore?.skyhooks[view.metadata.name]?.packages[`${record.name}|${record.version}`]
    const { attempt } = record.progress
    const isFirstStep = attempt.number === 1 && attempt.steps.length === 1 && (attempt.repeats ?? 0) === 0
    return isFirstStep && (before === undefined || !isHalfChanged(before)) && (stage === 'apply' || stage === 'upgrade')
  }

  /** What the host holds is what this part of the spec asks for. */
  readonly isDone = (key: string, spec: PackageSpec): boolean => {
    const hostState = this.host.get(key)
    if (spec.uninstall?.apply === true) return hostState === undefined || hostState.forgotten === true
    return (
      hostState !== undefined &&
      hostState.version === spec.version &&
      hostState.configured &&
      !hostState.pendingInterrupt &&
      !(hostState.installing && hasUnconditionalInterrupt(spec)) &&
      hostState.requiredInBoot !== this.node.bootId &&
      finalStages.has(hostState.stage) &&
      configText(hostState.config) === configText(spec.configMap) &&
      JSON.stringify(hostState.env) === JSON.stringify(spec.env ?? [])
    )
  }

  decided(snapshot: Snapshot, plan: Plan): void {
    this.#journalBefore = snapshot.journal
    this.#recordRequirements(snapshot, plan)
    this.#recordCompletion(snapshot, plan)
  }

  stepStarts(action: StartStep): void {
    if (isCheck(action)) return
    const { record, spec, stage } = action
    const key = this.keyOf(action)
    const isInstall = stage === 'apply' || stage === 'upgrade'
    const before = this.host.get(key) ?? {
      version: record.version,
      stage,
      config: {},
      env: [],
      configured: false,
      pendingInterrupt: false,
      installing: false,
      generation: undefined,
    }
    const config = spec.configMap ?? {}
    const changed = Object.keys({ ...before.config, ...config }).filter((name) => before.config[name] !== config[name])
    const hasKeyInterrupt = Object.entries(spec.configInterrupts ?? {}).some(
      ([pattern, { when }]) => when !== 'required' && changed.some((name) => matchesGlob(pattern, name)),
    )
    this.host.set(key, {
      ...before,
      forgotten: false,
      generation: record.work?.generation,
      version: stage === 'uninstall' ? before.version : record.version,
      stage: `${stage}…`,
      ...(isInstall && { configured: false, pendingInterrupt: false, installing: true, requiredInBoot: undefined }),
      ...(stage === 'config' && {
        config,
        env: spec.env ?? [],
        configured: true,
        pendingInterrupt: before.pendingInterrupt || (before.configured && hasKeyInterrupt),
      }),
    })
  }

  stepEnds(action: StartStep, succeeded: boolean): void {
    const key = this.keyOf(action)
    const hostState = this.host.get(key)
    if (!succeeded || !hostState || !isCheck(action)) return
    if (action.stage === 'uninstall') this.host.delete(key)
    else hostState.stage = action.stage
  }

  interruptEnds({ owners }: { readonly owners: readonly string[] }, skyhook: string): void {
    for (const owner of owners) {
      const [name, version] = owner.split('|')
      const hostState = this.host.get(`${skyhook}/${name}`)
      if (!hostState || hostState.version !== version || hostState.stage !== 'config') continue
      hostState.pendingInterrupt = false
      hostState.installing = false
      hostState.requiredInBoot = undefined
      hostState.stage = 'interrupt'
    }
  }

  /** A boot does what any package needed an interrupt for. */
  booted(): void {
    for (const [key, hostState] of this.host) this.#satisfyByBoot(key, hostState, this.node.bootId)
  }

  #satisfyByBoot(key: string, hostState: HostState, bootId: string): void {
    const { requiredInBoot } = hostState
    if (hostState.stage !== 'config' || requiredInBoot === undefined || requiredInBoot === bootId) return
    const [skyhook = '', name = ''] = key.split('/')
    const isPendingAnyway =
      hostState.installing && hasUnconditionalInterrupt(this.node.views.get(skyhook)?.spec.packages?.[name])
    hostState.requiredInBoot = undefined
    if (hostState.pendingInterrupt || isPendingAnyway) return
    hostState.installing = false
    hostState.stage = 'interrupt'
  }

  #recordCompletion({ skyhooks }: Snapshot, plan: Plan): void {
    for (const { metadata, spec } of skyhooks.known ? skyhooks.value : []) {
      const packages = metadata.deletionTimestamp === undefined ? spec.packages : undefined
      for (const [name, wanted] of Object.entries(packages ?? {})) {
        const key = `${metadata.name}/${name}`
        const completedSpec = this.completed.get(key)
        if (completedSpec !== undefined && completedSpec !== fingerprint(wanted)) this.completed.delete(key)
        const entry = plan.journal.skyhooks[metadata.name]?.packages[`${name}|${wanted.version}`]
        const hostState = this.host.get(key)
        if (!entry || isHalfChanged(entry) || !finalStages.has(entry.progress.stage) || attemptOf(entry.progress))
          continue
        if (!hostState || hostState.version !== wanted.version || !this.isDone(key, wanted)) continue
        if (wanted.uninstall?.apply === true) continue // it is to go
        hostState.installing = false
        this.completed.set(key, fingerprint(wanted))
      }
      for (const key of this.completed.keys())
        if (key.startsWith(`${metadata.name}/`) && !packages?.[key.slice(metadata.name.length + 1)])
          this.completed.delete(key)
    }
  }

  /** When config has passed, a package that was left to decide requires its interrupt, or does not. */
  #recordRequirements({ skyhooks, journal, bootId }: Snapshot, plan: Plan): void {
    for (const { metadata, spec } of skyhooks.known ? skyhooks.value : [])
      for (const [key, entry] of Object.entries(journal.skyhooks[metadata.name]?.packages ?? {})) {
        const after = plan.journal.skyhooks[metadata.name]?.packages[key]
        const wanted = spec.packages?.[entry.name]
        if (entry.progress.stage !== 'config' || !attemptOf(entry.progress)) continue
        if (!after || !wanted || !pendingIfRequired(entry, wanted)) continue
        const isAnswered = after.pendingInterrupt?.requiredInBoot !== entry.pendingInterrupt?.requiredInBoot
        if (after.progress.stage === 'config' && after.progress.state !== 'complete' && !isAnswered) continue
        const hostState = this.host.get(`${metadata.name}/${entry.name}`)
        const file = this.node.statusFiles.get(`${metadata.name}/${entry.name}`)
        if (!hostState || file?.state !== 'read' || !file.status.requests.interrupt) continue
        hostState.requiredInBoot = file.status.bootId
        this.#satisfyByBoot(`${metadata.name}/${entry.name}`, hostState, bootId)
      }
  }
}

export const describeStep = ({ view, record, attempt }: StartStep): string =>
  `${view.metadata.name} ${record.name}|${record.version} ${attempt.mode}`

export const isCheck = ({ attempt }: StartStep): boolean => attempt.mode.endsWith('-check')

const isHalfChanged = ({ work, progress: { state, stage }, pendingInterrupt }: PackageRecord): boolean =>
  work !== undefined &&
  state !== 'retained' &&
  state !== 'skipped' &&
  !(state === 'complete' && (stage === 'post-interrupt' || (stage === 'config' && !pendingInterrupt)))

/** The spec asks for an interrupt after each change, whatever the package says. */
export const hasUnconditionalInterrupt = (spec: PackageSpec | undefined): boolean =>
  spec?.interrupt !== undefined && spec.interrupt.when !== 'required'

const configText = (config: Readonly<Record<string, string>> = {}): string =>
  Object.keys(config)
    .sort()
    .map((key) => `${key}=${config[key]}`)
    .join()

/** What a complete package does not run again for, as long as it stays. */
const fingerprint = (spec: PackageSpec): string =>
  JSON.stringify([spec.version, configText(spec.configMap), spec.env ?? [], spec.uninstall ?? null])
