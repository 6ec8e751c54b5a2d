import { openJournalFile } from '../host/fs/journal-file.ts'
import { createUnits } from '../host/systemd/units.ts'
import { startEventRecorder } from '../kube/events.ts'
import { findCordonManager } from '../kube/node-writer.ts'
import { forEvictions } from '../kube/transport.ts'
import { createPolicyWatch } from '../lease/policy-watch.ts'
import { toWallMs, wallOffsetMs } from '../schemas/clock.ts'
import type { PolicyKnowledge } from '../schemas/deployment-policy.ts'
import { isWholeJournal, journalVersion, type StoredJournal } from '../schemas/journal.ts'
import type { NodePatch } from '../schemas/kubernetes.ts'
import { takeSnapshot } from '../stages/model/snapshot.ts'
import { countRequests } from '../stages/package/run-requests.ts'
import { carryTimes } from '../stages/skyhook/carry-times.ts'
import { createCensusCampaign } from './census/campaign.ts'
import { createEvictor } from './executors/evictions.ts'
import { createInterrupter } from './executors/interrupts.ts'
import { createPreparer } from './executors/prepare.ts'
import { publish } from './executors/publish.ts'
import { startStepRunner } from './executors/steps/run.ts'
import { createFailureBook } from './failures/book.ts'
import { createWakeup } from './loop.ts'
import type { Platform } from './platform/platform.ts'
import type { Settings } from './settings/settings.ts'
import { version } from '../schemas/version.ts'
import { createSlotLine } from './slots/slot-line.ts'
import { followOwnSlots } from './slots/own-slots.ts'
import { createSlotManager } from './slots/slot-manager.ts'
import { createFleetSize, createNodeCounter, readDelayMs, waitReportDelayMs } from './state/fleet-size.ts'
import { createOtherOperatorSource } from './state/other-operator.ts'
import { measureAnswers } from './state/answer-time.ts'
import { createCrashLoop } from './state/crash-loop.ts'
import { openHost } from './state/host.ts'
import { createJournalStore } from './state/journal.ts'
import { followNode } from './state/node.ts'
import { followPackageStatuses } from './state/package-statuses.ts'
import { createPodSource } from './state/pods.ts'
import { createReferences, createRolledOutConfigs, readConfigMap } from './state/rolled-out-configs.ts'
import { followSkyhooks } from './state/skyhooks.ts'
import { findStraySteps } from './state/stray-steps.ts'
import { watchFacts } from './state/watch-facts.ts'
import { errorField } from './telemetry/log.ts'
import { createMetrics, workNow } from './telemetry/metrics.ts'
import { createEventReporter } from './telemetry/reporter.ts'

/** The parts of a running agent, connected. */
export type AgentComponents = Awaited<ReturnType<typeof wire>>

type WireOptions = { readonly settings: Settings; readonly platform: Platform; readonly signal: AbortSignal }

/** Connects the parts of an agent. They start to read and watch, and write nothing. */
export async function wire({ settings, platform, signal }: WireOptions) {
  const { clock, random, log, root } = platform
  const { nodeName, namespace } = settings
  const wakeup = createWakeup()
  const { wake } = wakeup
  const fleet = createFleetSize(settings.estimatedNodeCount)
  const connection = platform.connectBus()
  const units = createUnits(connection)
  const host = await openHost({ root, connection, folders: settings, clock, log, wake, signal })

  const metrics = createMetrics({
    version,
    slots: () => slots.kinds(),
    oldestSlotAge: () => Math.max(0, toWallMs(clock, clock.steadyMs()) - Math.min(...slots.grantedAtMs())) / 1000,
    rebootsMade: () => journal.current().reboots ?? 0,
    work: () => workNow(journal.current(), clock.steadyMs()),
    packageRequests: () => countRequests(statuses.current(), host.bootId()),
    isCensusCounting: () => census.isCounting(),
    fleetSeries: () => census.fleetSeries(),
    reasons: () => reporter.reasonAges(),
    reflectorAges: () =>
      new Map([
        ['nodes', nodes.ageMs() / 1000],
        ['skyhooks', skyhooks.ageMs() / 1000],
      ]),
  })
  const answers = measureAnswers(
    platform.connectApi(({ verb, code }) => metrics.apiRequest(verb, code)),
    clock,
  )
  const { transport } = answers
  const recorder = startEventRecorder(transport, { clock, random, component: 'skyhookd', host: nodeName, signal })
  const failures = createFailureBook({ clock, random })
  const onFact = (kind: string) => watchFacts(kind, { failures, log, wake })
  const nodes = followNode(transport, nodeName, {
    clock,
    random,
    wake() {
      if (hasPolicies) skyhooks.policiesChanged() // its labels determine its compartment
      wake()
    },
    onFact: onFact('nodes'),
    signal,
  })
  let hasPolicies = false
  const policies = createPolicyWatch(transport, {
    clock,
    random,
    onChange: () => skyhooks.policiesChanged(),
    onFact: onFact('deploymentpolicies'),
    signal,
  })
  function policyOf(name: string | undefined): PolicyKnowledge | undefined {
    const policy = policies.of(name)
    if (policy !== undefined) hasPolicies = true
    return policy?.state === 'found' ? { ...policy, nodeLabels: nodes.current()?.metadata.labels ?? {} } : policy
  }
  const skyhooks = followSkyhooks(transport, {
    policyOf,
    defaultBudget: settings.defaultBudget,
    clock,
    random,
    readDelayMs: () => readDelayMs(fleet.agents(), random.number()),
    wake,
    onFact: onFact('skyhooks'),
    onReadFailed(skyhook, error) {
      log.warn({ skyhook, ...errorField(error) }, 'Skyhook could not be read')
      failures.record(`read ${skyhook}`, { operation: `read Skyhook ${skyhook}`, skyhook }, error)
      wake()
    },
    onReadEnded: (skyhook) => failures.clear(`read ${skyhook}`),
    signal,
  })
  const journal = createJournalStore(
    openJournalFile<StoredJournal>(root, { version: journalVersion, clock, isWhole: isWholeJournal }),
    log,
    {
      store: (journal) => ({ ...journal, wallOffsetMs: wallOffsetMs(clock) }),
      carry: (stored) =>
        carryTimes(stored, { bootId: host.bootId(), nowMs: clock.steadyMs(), wallOffsetMs: wallOffsetMs(clock) }),
    },
  )
  const straySteps = findStraySteps({ systemd: units, connection, journal: journal.current, clock, log, wake })
  const evictor = createEvictor({
    transport: forEvictions(transport),
    clock,
    random,
    log,
    signal,
    mayDelete: settings.drain.allowDelete,
    onDeleted: (pod) => reporter.podDeleted(pod),
    onEnded: (result) => metrics.evictionEnded(result),
  })
  const pods = createPodSource({
    transport,
    clock,
    random,
    nodeName,
    onUids: (uids) => evictor.retain(uids),
    onFact: onFact('pods'),
    onUnfollowed: () => failures.clear('watch pods'),
    wake,
    signal,
  })
  const nodeCounter = createNodeCounter(transport, { clock, signal })

  const leases = { transport, namespace, clock }
  const ownSlots = followOwnSlots({
    leases,
    nodeName,
    node: nodes.current,
    skyhooks: skyhooks.current,
    journal: journal.current,
    clock,
    random,
    wake,
    onFact: onFact('leases'),
    signal,
  })
  const line = createSlotLine({
    leases,
    nodeUid: () => nodes.current()?.metadata.uid,
    skyhooks: skyhooks.current,
    fleet,
    random,
    onTurn(skyhook) {
      if (slots.requestNow(skyhook)) wake()
    },
    onNear: wake,
    onCountMissing: () => census.look(),
    signal,
  })
  const slots = createSlotManager({
    leases,
    ownSlots,
    node: nodes.current,
    bootId: host.bootId,
    skyhooks: skyhooks.current,
    journal: journal.current,
    line,
    runtimeRequiredTaint: settings.runtimeRequiredTaint,
    defaultBudget: settings.defaultBudget,
    clock,
    random,
    log,
    uncountedSince: () => census.uncounted(),
    signal,
    onReleased: (phase, seconds) => metrics.slotHeld(phase, seconds),
    onAcquired: (seconds) => metrics.slotWaited(seconds),
  })

  const crashLoop = createCrashLoop({ root, clock, log, wake })
  const references = createReferences(transport, namespace)
  const rolledOutConfigs = createRolledOutConfigs(readConfigMap(transport, namespace))
  const { ignoreNodeWright: isIgnored } = settings
  const otherOperator = createOtherOperatorSource({ transport, root, folders: settings, isIgnored, signal })
  const preparer = createPreparer({ platform, settings, references, whyUnfit: host.checkFitness, units, signal })
  const steps = startStepRunner({
    root,
    units,
    connection,
    hostSource: host,
    node: nodes.current,
    journal: journal.current,
    settings,
    references,
    contentOf: preparer.contentOf,
    clock,
    failures,
    metrics,
    log,
    wake,
  })
  const statuses = followPackageStatuses({
    root,
    folders: settings,
    journal: journal.current,
    clock,
    failures,
    log,
    wake,
  })
  const interrupter = createInterrupter({
    root,
    units,
    connection,
    settings,
    journal: journal.current,
    nodeCounter,
    evictedOwners: evictor.evictedOwners,
    pods,
    slots,
    clock,
    log,
    signal,
  })

  const reporter = createEventReporter({
    clock,
    log,
    recorder,
    node: nodes.current,
    findCordoner: () =>
      findCordonManager(transport, `/api/v1/nodes/${nodeName}`, 'skyhookd', signal).catch(() => undefined),
  })
  const census = createCensusCampaign({
    platform,
    leases,
    settings,
    isNodeWrightServed: () => otherOperator.current().isNodeWrightServed,
    fleet,
    metrics,
    signal,
  })
  const stageSettings = {
    runtimeRequiredTaint: settings.runtimeRequiredTaint,
    skipNamespaces: settings.drain.skipNamespaces,
    reapplyOnReboot: settings.reapplyOnReboot,
    ignoreNodeWright: settings.ignoreNodeWright,
  }

  return {
    wakeup,
    connection,
    units,
    host,
    journal,
    straySteps,
    crashLoop,
    failures,
    nodes,
    skyhooks,
    pods,
    ownSlots,
    rolledOutConfigs,
    otherOperator,
    metrics,
    reporter,
    census,
    executors: {
      preparer,
      slots,
      steps,
      interrupter,
      statuses,
      evictor,
      nodeCounter,
      publish: (patch: NodePatch, computedFrom: string) => publish(transport, nodes, patch, computedFrom, signal),
    },
    /** Undefined while the own Node is unknown. */
    takeSnapshot: (nowMs: number) =>
      takeSnapshot(
        {
          bootId: host.bootId(),
          node: nodes.current(),
          isNodeInDoubt: nodes.isInDoubt(),
          skyhooks: skyhooks.current(),
          areSkyhooksInDoubt: skyhooks.isInDoubt(),
          journal: journal.current(),
          journalError: journal.error(),
          strayStepsReason: straySteps.reason(),
          crashLoopReason: crashLoop.reason(),
          attempts: steps.attempts(),
          preparations: preparer.current(),
          slots: ownSlots.held(),
          slotDenials: slots.denials(),
          distantSkyhooks: line.distant(),
          pods: pods.current(),
          nodeCount: nodeCounter.current(),
          hostFolders: host.folders(),
          rolledOutConfigs: rolledOutConfigs.current(),
          otherOperator: otherOperator.current(),
          evictions: evictor.current(),
          evictedOwners: evictor.evictedOwners(),
          interrupts: interrupter.current(),
          statuses: statuses.current(),
          requestedStatuses: statuses.requested(),
          cleanUps: steps.cleanUps(),
          failures: failures.current(),
          host: host.state(),
          hostReport: host.report(),
          rebootBarrier: host.rebootBarrier(),
          wallOffsetMs: wallOffsetMs(clock),
          answerMs: answers.currentMs(),
          spreadMs: waitReportDelayMs(fleet.agents(), nodeName),
        },
        nowMs,
        stageSettings,
      ),
    /** All parts forget results that no plan needs. */
    retain: (needed: ReadonlySet<string>): void => {
      for (const owner of [preparer, statuses, steps]) owner.retain(needed)
    },
    async close() {
      statuses.close()
      await steps.close()
      straySteps.close()
      connection.close()
      transport.close()
    },
  }
}
