/** One node on which lives are lived, one after another. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Transport } from '../../src/kube/transport.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { NodeStateEntry } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { conditionOf, type SkyhookStatus } from '../../src/census/skyhook-status.ts'
import { parseLines } from '../conformance/journal-lines.ts'
import { hostOf } from '../e2e/host.ts'
import { patch, paths, unlessGone } from '../e2e/kube.ts'
import type { KubeEvent, Pod } from '../e2e/moments.ts'
import { manifest, selectedBy, shown, traces } from '../e2e/skyhooks.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { agentProcess, within, type AgentProcess } from './agent-process.ts'
import { lives, type LifeName, type Pack } from './workloads.ts'
import { neutral, nodeFacts, type Outcome } from './verdict.ts'

export const namespace = 'torture'
/** The journal is in the kubelet's folder: it belongs to this machine, and no power cut takes a line of it. */
const journalPath = '/var/lib/kubelet/journal'
const serviceOf = (skyhook: string): string => `recorded@${skyhook}`

/** Longer than anything takes that is not stuck: a step's third repetition, an agent that comes back after its second fall. */
const completeWithinMs = 90_000
const tidyWithinMs = 60_000
const lookEveryMs = 500
/** Many times what an agent takes to write what one before it left out. */
const mendingMs = 500

export type Lane = {
  readonly node: string
  readonly agent: AgentProcess
  /** Everything that comes before what is tortured; `run` is a number of its own. */
  begin(life: LifeName, run: number): Promise<void>
  /** The node is told what to do. */
  tell(): Promise<void>
  /** At its point; false when the life ended without passing it. */
  caught(): Promise<boolean>
  /** Waits until the life is over; throws when it does not end. */
  end(): Promise<Outcome>
  /** For people, after a failure: the journal, the agent's journal and its log. */
  evidence(): Promise<string>
  /** As it was before; `restartAgent` when something may be wrong with this one. */
  tidy(restartAgent: boolean): Promise<void>
}

export type LaneOptions = { readonly box: Sandbox; readonly api: Transport; readonly node: string; readonly pack: Pack }

/** Prepares a node for lives. */
export async function openLane({ box, api, node, pack }: LaneOptions): Promise<Lane> {
  const host = hostOf(box, node)
  const agent = agentProcess(box, node)
  const line = `echo "$$(date +%%s.%%N) %i service - started recorded@%i" >>${journalPath}`
  await host.write(
    '/etc/systemd/system/recorded@.service',
    `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c '${line}'\n`,
  )
  await host.exec('sh', '-c', 'systemctl mask --now tuned; systemctl daemon-reload; sync') // a second of processor time in each of many boots

  let life: LifeName = 'service'
  let skyhook = ''
  let boot = ''
  let boots = 0

  const packed: Pack = (version, more) => pack(version, { env: [{ name: 'JOURNAL_FILE', value: journalPath }], ...more })
  const budgeted = (spec: SkyhookSpec): SkyhookSpec => ({ interruptionBudget: { count: 1 }, ...spec })
  const podPath = `/api/v1/namespaces/${namespace}/pods`
  const skyhookPath = (): string => `${paths.skyhooks}/${skyhook}`
  const readNode = async (): Promise<KubernetesNode> => await api.json('GET', `${paths.nodes}/${node}`)

  /** Boots are counted by whoever looks often enough; a host takes longer to come up than this looks away. */
  async function seeBoot(): Promise<void> {
    const now = await host.bootId().catch(() => '')
    if (now === '' || now === boot) return
    boot = now
    boots++
  }

  async function isComplete(): Promise<boolean> {
    await seeBoot()
    const found = await orUndefined(api.json<Skyhook>('GET', skyhookPath()))
    const status = (found?.status ?? {}) as SkyhookStatus
    const ready = conditionOf(status, 'Ready')
    if (!found || ready?.status !== 'True' || ready.observedGeneration !== found.metadata.generation) return false
    const at = await orUndefined(readNode())
    if (!at) return false
    const { notReady, erroring, reason } = shown(at, skyhook)
    if (notReady !== 'False Complete' || erroring !== 'False Not Erroring' || reason !== undefined) return false
    const leases = await orUndefined(api.json<{ items: Lease[] }>('GET', paths.leases))
    const isOurs = (lease: Lease): boolean =>
      lease.metadata.labels?.['skyhook.nvidia.com/name'] === skyhook && readSlot(lease) !== undefined
    return leases !== undefined && !leases.items.some(isOurs)
  }

  async function awaitComplete(): Promise<void> {
    if (await within(completeWithinMs, isComplete, 200)) return
    const at = await orUndefined(readNode())
    throw new Error(`not complete within ${completeWithinMs} ms: ${JSON.stringify(at && nodeFacts(at, skyhook))}`)
  }

  /** What an agent mends when it starts belongs to the end, and the Node may be complete before it has started. */
  async function agentReady(): Promise<void> {
    const isSynced = async (): Promise<boolean> => (await box.run(['logs', node])).stdout.includes('"synced"')
    if (!(await within(60_000, isSynced, 300))) throw new Error(`no agent works on ${node}`)
    await sleep(mendingMs)
  }

  async function createPod(): Promise<void> {
    const container = { name: 'workload', image: 'sandbox.local/workload:1', imagePullPolicy: 'Never' }
    const spec = { nodeName: node, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, containers: [container] }
    await api.json('POST', podPath, { body: { metadata: { name: skyhook }, spec } })
    const runs = async (): Promise<boolean> => (await api.json<Pod>('GET', `${podPath}/${skyhook}`)).status?.phase === 'Running'
    if (!(await within(30_000, runs))) throw new Error(`pod ${skyhook} does not run on ${node}`)
  }

  const names = (): Record<string, string> => ({ [skyhook]: 'SKYHOOK', [node]: 'NODE', [box.env()['REGISTRY'] ?? '']: 'REGISTRY' })

  async function filesOf(folder: string): Promise<Record<string, string>> {
    const script = `cd ${folder} 2>/dev/null && find . -type f -not -path '*/copies/*' | sort | while read -r f; do echo "=== $f"; cat "$f"; echo; done`
    const text = await host.exec('sh', '-c', script)
    const run = names()
    return Object.fromEntries(
      text
        .split(/^=== /m)
        .filter(Boolean)
        .map((part) => {
          const [path = '', ...content] = part.split('\n')
          return [neutral(path, run), comparable(path, neutral(content.join('\n').trim(), run))]
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
    async begin(named, run) {
      life = named
      skyhook = `${named}-${run}`
      agent.forget()
      await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectedBy]: skyhook } } })
      if (lives[life].hasPod) await createPod()
      const before = lives[life].before?.(packed, serviceOf(skyhook))
      if (before) {
        await api.json('POST', paths.skyhooks, { body: manifest(skyhook, budgeted(before)) })
        await awaitComplete()
      }
      boot = await host.bootId()
      boots = 0
    },
    async tell() {
      const { before, spec, removed = [] } = lives[life]
      const told = manifest(skyhook, budgeted(spec(packed, serviceOf(skyhook))))
      if (!before) return void (await api.json('POST', paths.skyhooks, { body: told }))
      const gone = Object.fromEntries(removed.map((name) => [name, null]))
      await patch(api, skyhookPath(), { spec: { ...told.spec, packages: { ...told.spec.packages, ...gone } } })
    },
    async caught() {
      let wasComplete = false
      let lookedAtMs = 0
      const isOver = async (): Promise<boolean> => {
        if (agent.isCaught || wasComplete) return true
        if (Date.now() - lookedAtMs < lookEveryMs) return false // what it takes from the agent's time is not the agent's
        wasComplete = await isComplete()
        lookedAtMs = Date.now()
        return wasComplete
      }
      if (!(await within(completeWithinMs, isOver))) throw new Error('neither at the point nor complete')
      return !wasComplete || agent.isCaught
    },
    async end() {
      await awaitComplete()
      await agentReady()
      await seeBoot()
      const text = readFileSync(join(box.folder, 'hosts', node, 'kubelet', 'journal'), 'utf8')
      const at = await readNode()
      return {
        node: JSON.parse(neutral(JSON.stringify(nodeFacts(at, skyhook)), names())) as Outcome['node'],
        files: withoutOldCopies(await filesOf(`/var/lib/skyhook/${skyhook}`), Object.values(shown(at, skyhook).state)),
        lines: parseLines(text.split('\n'), skyhook),
        boots,
        unknown: await unknownSteps(),
      }
    },
    async evidence() {
      const journals = await host
        .exec('sh', '-c', `grep ' ${skyhook} ' ${journalPath}; cat /var/lib/skyhook/.agent/journal.json`)
        .catch(String)
      const [log, before] = await Promise.all([box.run(['logs', node]), box.run(['logs', node, '--previous'])])
      return [journals, 'previous agent:', before.stdout, 'agent:', log.stdout, log.stderr].join('\n')
    },
    async tidy(restartAgent) {
      agent.forget()
      agent.resume()
      await unlessGone(api, 'DELETE', skyhookPath())
      await unlessGone(api, 'DELETE', `${podPath}/${skyhook}`)
      const isGone = async (): Promise<boolean> =>
        (await unlessGone(api, 'GET', skyhookPath())) === undefined && traces(await readNode(), skyhook).length === 0
      if (!(await within(tidyWithinMs, isGone, 50))) throw new Error(`${skyhook} does not go from ${node}`)
      await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectedBy]: null } } })
      await host.exec('sh', '-c', `rm -rf /var/lib/skyhook/${skyhook} /var/log/skyhook/${skyhook} /var/lib/skyhook/.agent/images/*; sync`)
      if (restartAgent) await restart()
    },
  }

  async function restart(): Promise<void> {
    const agents = async (): Promise<Pod[]> => {
      const query = { labelSelector: 'app.kubernetes.io/name=skyhookd', fieldSelector: `spec.nodeName=${node}` }
      return (await api.json<{ items: Pod[] }>('GET', '/api/v1/namespaces/skyhook/pods', { query })).items
    }
    const old = await agents()
    for (const { metadata } of old) await unlessGone(api, 'DELETE', `/api/v1/namespaces/skyhook/pods/${metadata.name}`)
    const isStarted = async (): Promise<boolean> => {
      const [pod, ...others] = await agents()
      const { containerStatuses } = (pod?.status ?? {}) as { containerStatuses?: { started?: boolean }[] }
      return (
        others.length === 0 && !old.some(({ metadata }) => metadata.uid === pod?.metadata.uid) && containerStatuses?.[0]?.started === true
      )
    }
    if (!(await within(tidyWithinMs, isStarted, 100))) throw new Error(`no new agent starts on ${node}`)
  }
}

/** Copy dirs of versions that are no more, and of earlier configurations, go some time after the work. */
function withoutOldCopies(files: Readonly<Record<string, string>>, present: readonly NodeStateEntry[]): Record<string, string> {
  const generationOf = (path: string, { name, version }: NodeStateEntry): number | undefined => {
    const [, folder, generation] = /^\.\/([^/]+)-UID-(\d+)\//.exec(path) ?? []
    return folder === `${name}-${version}` ? Number(generation) : undefined
  }
  const paths = Object.keys(files)
  const isNewest = (path: string, entry: NodeStateEntry): boolean =>
    generationOf(path, entry) === Math.max(...paths.map((other) => generationOf(other, entry) ?? 0))
  const isCopy = (path: string): boolean => /^\.\/[^/]+-UID-\d+\//.test(path)
  return Object.fromEntries(Object.entries(files).filter(([path]) => !isCopy(path) || present.some((entry) => isNewest(path, entry))))
}

/** Without what depends on which of two packages at work was quicker. */
function comparable(path: string, content: string): string {
  if (path.includes('/node-metadata/')) return '' // of the Node at some instant of the life
  if (!path.includes('/history/')) return content
  const { history } = JSON.parse(content) as { history: { version: string }[] } // of all packages that call themselves `journal`
  return history
    .map(({ version }) => version)
    .toSorted()
    .join(' ')
}

/** While the API server is down nobody knows anything. */
async function orUndefined<T>(asking: Promise<T>): Promise<T | undefined> {
  return await asking.catch(() => undefined)
}
