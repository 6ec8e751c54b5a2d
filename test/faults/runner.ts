/** One node that runs workloads, one after another. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { NodeStateEntry } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { conditionOf, type SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import { parseLines } from '../kit/files/journal-lines.ts'
import { hostOf } from '../kit/cluster/host.ts'
import { patch, paths, ignoreNotFound } from '../kit/cluster/kube.ts'
import type { KubeEvent, Pod } from '../kit/cluster/moments.ts'
import { manifest, selectorLabel, publishedState, traces } from '../kit/cluster/skyhooks.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { stepsPath } from '../kit/recorded/step-lines.ts'
import { agentProcess, waitUntil, type AgentProcess } from '../kit/cluster/agent-process.ts'
import { workloads, type WorkloadName, type Pack } from './workloads.ts'
import { normalize, nodeOutcome, type Outcome } from './verdict.ts'

export const namespace = 'faults'
/** The journal is in the kubelet's folder: it is on this machine's disk, so no power cut loses a line of it. */
const journalPath = '/var/lib/kubelet/journal'
const serviceOf = (skyhook: string): string => `recorded@${skyhook}`

/** Longer than anything takes that is not stuck: a step's third repetition, an agent's restart after two crashes. */
const completionTimeoutMs = 90_000
const cleanUpTimeoutMs = 60_000
/** The kubelet may still be away from the API server, as the fault before left it. */
const podStartTimeoutMs = 90_000
const pollIntervalMs = 500
/** Many times what an agent takes to write what its predecessor left out. */
const repairMs = 500

export type Runner = {
  readonly node: string
  readonly agent: AgentProcess
  /** Sets up everything before the part under test; `run` is a unique number. */
  prepare(workload: WorkloadName, run: number): Promise<void>
  /** Applies the spec under test. */
  applySpec(): Promise<void>
  /** Waits for the failpoint; false if the workload completes without passing it. */
  waitForPoint(): Promise<boolean>
  /** Waits until the workload completes; throws if it does not. */
  awaitOutcome(): Promise<Outcome>
  /** Evidence of a failure: the journal, the agent's journal and its logs. */
  evidence(): Promise<string>
  /** Restores the node; `restartAgent` if the agent may be in a bad state. */
  cleanUp(restartAgent: boolean): Promise<void>
}

export type RunnerOptions = {
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly node: string
  readonly pack: Pack
}

/** Prepares a node for workloads. */
export async function openRunner({ box, api, node, pack }: RunnerOptions): Promise<Runner> {
  const host = hostOf(box, node)
  const agent = agentProcess(box, node)
  const line = `echo "$$(date +%%s.%%N) %i service - started recorded@%i" >>${journalPath}`
  const stepLine = `echo "$$(date +%%s.%%N) - service - started - begins" >>${stepsPath}`
  await host.write(
    '/etc/systemd/system/recorded@.service',
    `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c '${line}; ${stepLine}'\n`,
  )
  // it costs a second of CPU time in each of many boots
  await host.exec('sh', '-c', 'systemctl mask --now tuned; systemctl daemon-reload; sync')

  let workload: WorkloadName = 'service'
  let skyhook = ''
  /** Ids, from the one before the workload on. */
  let boots: string[] = []

  const packed: Pack = (version, more) =>
    pack(version, {
      env: [
        { name: 'JOURNAL_FILE', value: journalPath },
        { name: 'STEPS_FILE', value: stepsPath },
      ],
      ...more,
    })
  const budgeted = (spec: SkyhookSpec): SkyhookSpec => ({ interruptionBudget: { count: 1 }, ...spec })
  const podPath = `/api/v1/namespaces/${namespace}/pods`
  const skyhookPath = (): string => `${paths.skyhooks}/${skyhook}`
  const readNode = async (): Promise<KubernetesNode> => await api.json('GET', `${paths.nodes}/${node}`)

  /** Counts boots by polling, more often than a host can boot. */
  async function trackBoot(): Promise<void> {
    const now = await host.bootId().catch(() => '')
    if (now !== '' && now !== boots.at(-1)) boots.push(now)
  }

  async function isComplete(): Promise<boolean> {
    await trackBoot()
    const found = await undefinedOnError(api.json<Skyhook>('GET', skyhookPath()))
    const status = (found?.status ?? {}) as SkyhookStatus
    const ready = conditionOf(status, 'Ready')
    if (!found || ready?.status !== 'True' || ready.observedGeneration !== found.metadata.generation) return false
    const at = await undefinedOnError(readNode())
    if (!at) return false
    const { notReady, erroring, reason } = publishedState(at, skyhook)
    if (notReady !== 'False Complete' || erroring !== 'False Not Erroring' || reason !== undefined) return false
    const leases = await undefinedOnError(api.json<{ items: Lease[] }>('GET', paths.leases))
    const isOurs = (lease: Lease): boolean =>
      lease.metadata.labels?.['skyhook.nvidia.com/name'] === skyhook && readSlot(lease) !== undefined
    return leases !== undefined && !leases.items.some(isOurs)
  }

  async function awaitComplete(): Promise<void> {
    if (await waitUntil(completionTimeoutMs, isComplete, 200)) return
    const at = await undefinedOnError(readNode())
    throw new Error(`not complete within ${completionTimeoutMs} ms: ${JSON.stringify(at && nodeOutcome(at, skyhook))}`)
  }

  /**
   * What an agent repairs when it starts belongs to the outcome, and the Node may be complete before it has started.
   */
  async function awaitAgentReady(): Promise<void> {
    const isSynced = async (): Promise<boolean> => (await box.run(['logs', node])).stdout.includes('"synced"')
    if (!(await waitUntil(60_000, isSynced, 300))) throw new Error(`agent on ${node} did not sync within 60 s`)
    await sleep(repairMs)
  }

  async function createPod(): Promise<void> {
    const container = { name: 'workload', image: 'sandbox.local/workload:1', imagePullPolicy: 'Never' }
    const spec = {
      nodeName: node,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [container],
    }
    await api.json('POST', podPath, { body: { metadata: { name: skyhook }, spec } })
    const runs = async (): Promise<boolean> =>
      (await api.json<Pod>('GET', `${podPath}/${skyhook}`)).status?.phase === 'Running'
    if (!(await waitUntil(podStartTimeoutMs, runs)))
      throw new Error(`pod ${skyhook} did not start on ${node} within ${podStartTimeoutMs / 1_000} s`)
  }

  const names = (): Record<string, string> => ({
    [skyhook]: 'SKYHOOK',
    [node]: 'NODE',
    [box.env()['REGISTRY'] ?? '']: 'REGISTRY',
  })

  async function filesOf(folder: string): Promise<Record<string, string>> {
    const script =
      `cd ${folder} 2>/dev/null && find . -type f -not -path '*/copies/*' | sort | while read -r f; ` +
      `do echo "=== $f"; cat "$f"; echo; done`
    const text = await host.exec('sh', '-c', script)
    const run = names()
    return Object.fromEntries(
      text
        .split(/^=== /m)
        .filter(Boolean)
        .map((part) => {
          const [path = '', ...content] = part.split('\n')
          return [normalize(path, run), comparable(path, normalize(content.join('\n').trim(), run))]
        }),
    )
  }

  async function unknownSteps(): Promise<string[]> {
    const { items } = await api.json<{ items: KubeEvent[] }>('GET', paths.events)
    return items.flatMap(({ reason, message = '' }) =>
      reason === 'StepOutcomeUnknown' && message.includes(`${skyhook},`) ? [message] : [],
    )
  }

  return {
    node,
    agent,
    async prepare(named, run) {
      workload = named
      skyhook = `${named}-${run}`
      agent.clearFailpoint()
      await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: skyhook } } })
      if (workloads[workload].hasPod) await createPod()
      const before = workloads[workload].before?.(packed, serviceOf(skyhook))
      if (before) {
        await api.json('POST', paths.skyhooks, { body: manifest(skyhook, budgeted(before)) })
        await awaitComplete()
      }
      boots = []
      await trackBoot()
    },
    async applySpec() {
      const { before, spec, removed = [] } = workloads[workload]
      const object = manifest(skyhook, budgeted(spec(packed, serviceOf(skyhook))))
      if (!before) return void (await api.json('POST', paths.skyhooks, { body: object }))
      const gone = Object.fromEntries(removed.map((name) => [name, null]))
      await patch(api, skyhookPath(), { spec: { ...object.spec, packages: { ...object.spec.packages, ...gone } } })
    },
    async waitForPoint() {
      let wasComplete = false
      let polledAtMs = 0
      const isOver = async (): Promise<boolean> => {
        if (agent.hasHitPoint || wasComplete) return true
        if (Date.now() - polledAtMs < pollIntervalMs) return false // polling must not slow the agent down
        wasComplete = await isComplete()
        polledAtMs = Date.now()
        return wasComplete
      }
      if (!(await waitUntil(completionTimeoutMs, isOver)))
        throw new Error(`neither at the failpoint nor complete within ${completionTimeoutMs} ms`)
      return !wasComplete || agent.hasHitPoint
    },
    async awaitOutcome() {
      await awaitComplete()
      await awaitAgentReady()
      await trackBoot()
      const text = readFileSync(join(box.folder, 'hosts', node, 'kubelet', 'journal'), 'utf8')
      const at = await readNode()
      return {
        node: JSON.parse(normalize(JSON.stringify(nodeOutcome(at, skyhook)), names())) as Outcome['node'],
        files: withoutOldCopyDirs(
          await filesOf(`/var/lib/skyhook/${skyhook}`),
          Object.values(publishedState(at, skyhook).state),
        ),
        lines: parseLines(text.split('\n'), skyhook),
        boots: boots.length - 1,
        unknown: await unknownSteps(),
      }
    },
    async evidence() {
      const journals = await host
        .exec('sh', '-c', `grep ' ${skyhook} ' ${journalPath}; cat /var/lib/skyhook/.agent/journal.json`)
        .catch(String)
      const [log, before] = await Promise.all([box.run(['logs', node]), box.run(['logs', node, '--previous'])])
      return [
        `boots: ${boots.join(' ')}`,
        journals,
        'previous agent:',
        before.stdout,
        'agent:',
        log.stdout,
        log.stderr,
      ].join('\n')
    },
    async cleanUp(restartAgent) {
      agent.clearFailpoint()
      agent.resume()
      await ignoreNotFound(api, 'DELETE', skyhookPath())
      await ignoreNotFound(api, 'DELETE', `${podPath}/${skyhook}`)
      const isGone = async (): Promise<boolean> =>
        (await ignoreNotFound(api, 'GET', skyhookPath())) === undefined &&
        traces(await readNode(), skyhook).length === 0
      if (!(await waitUntil(cleanUpTimeoutMs, isGone, 50)))
        throw new Error(`${skyhook} was not removed from ${node} within ${cleanUpTimeoutMs} ms`)
      await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: null } } })
      await host.exec(
        'sh',
        '-c',
        `rm -rf /var/lib/skyhook/${skyhook} /var/log/skyhook/${skyhook} /var/lib/skyhook/.agent/images/*; sync`,
      )
      if (restartAgent) await restart()
    },
  }

  async function restart(): Promise<void> {
    const agents = async (): Promise<Pod[]> => {
      const query = { labelSelector: 'app.kubernetes.io/name=skyhookd', fieldSelector: `spec.nodeName=${node}` }
      return (await api.json<{ items: Pod[] }>('GET', '/api/v1/namespaces/skyhook/pods', { query })).items
    }
    const old = await agents()
    for (const { metadata } of old)
      await ignoreNotFound(api, 'DELETE', `/api/v1/namespaces/skyhook/pods/${metadata.name}`)
    const isStarted = async (): Promise<boolean> => {
      const [pod, ...others] = await agents()
      const { containerStatuses } = (pod?.status ?? {}) as { containerStatuses?: { started?: boolean }[] }
      return (
        others.length === 0 &&
        !old.some(({ metadata }) => metadata.uid === pod?.metadata.uid) &&
        containerStatuses?.[0]?.started === true
      )
    }
    if (!(await waitUntil(cleanUpTimeoutMs, isStarted, 100)))
      throw new Error(`no new agent started on ${node} within ${cleanUpTimeoutMs} ms`)
  }
}

/** Copy dirs of earlier versions and configurations are removed some time after the work. */
function withoutOldCopyDirs(
  files: Readonly<Record<string, string>>,
  present: readonly NodeStateEntry[],
): Record<string, string> {
  const generationOf = (path: string, { name, version }: NodeStateEntry): number | undefined => {
    const [, folder, generation] = /^\.\/([^/]+)-UID-(\d+)\//.exec(path) ?? []
    return folder === `${name}-${version}` ? Number(generation) : undefined
  }
  const paths = Object.keys(files)
  const isNewest = (path: string, entry: NodeStateEntry): boolean =>
    generationOf(path, entry) === Math.max(...paths.map((other) => generationOf(other, entry) ?? 0))
  const isCopy = (path: string): boolean => /^\.\/[^/]+-UID-\d+\//.test(path)
  return Object.fromEntries(
    Object.entries(files).filter(([path]) => !isCopy(path) || present.some((entry) => isNewest(path, entry))),
  )
}

/** Without what depends on which of two concurrent packages was quicker. */
function comparable(path: string, content: string): string {
  if (path.includes('/node-metadata/')) return '' // a snapshot of the Node at some moment
  if (!path.includes('/history/')) return content
  // of all packages with the name `journal` in config.json
  const { history } = JSON.parse(content) as { history: { version: string }[] }
  return history
    .map(({ version }) => version)
    .toSorted()
    .join(' ')
}

/** Undefined while the API server is down. */
async function undefinedOnError<T>(request: Promise<T>): Promise<T | undefined> {
  return await request.catch(() => undefined)
}
