import { isFutureVersion, isNotFound } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { lastErrorOf, type Reflector, type ReflectorState, startReflector } from '../../kube/reflector.ts'
import { requestBackoff } from '../../kube/retry.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { backoffMs } from '../../schemas/backoff.ts'
import { type Budget, budgetOf } from '../../schemas/budget.ts'
import { sleep } from '../../schemas/clock.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import { isEqual } from '../../schemas/json.ts'
import { type ConfigUpdates, configUpdatesOf } from '../../schemas/rolled-out-configs.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type Known, known, type SkyhookView, unknown } from '../../stages/model/snapshot.ts'
import type { WatchPorts } from './watch-facts.ts'

/** After this many answers that differ from the watch, the watch is more than a moment late. */
const minOtherAnswers = 3

export type SkyhookSource = {
  /** The result of `policyOf` may have changed. */
  readonly policiesChanged: () => void
  readonly synced: Promise<void>
  ageMs(): number
  /** Unknown until every Skyhook was read: the order depends on every priority. */
  readonly current: () => Known<readonly SkyhookView[]>
  /** The watch is broken: later edits are not seen. */
  isInDoubt(): boolean
}

/**
 * Follows only the metadata of all Skyhooks, and reads an object when its generation or annotations change, so that the
 * status of a large rollout, which changes every second, never travels to the nodes.
 */
export function followSkyhooks(
  transport: KubeTransport,
  options: WatchPorts & {
    /** Spreads the reads of a fleet after one edit, in ms (design: up to min(5 s, 1 ms × agents)). */
    readonly readDelayMs: () => number
    /** What is known about the policy that a Skyhook names; undefined if it names none. */
    readonly policyOf: (name: string | undefined) => PolicyKnowledge | undefined
    /** For Skyhooks without a budget. */
    readonly defaultBudget: Budget
    readonly onReadFailed: (name: string, error: unknown) => void
    /** The Skyhook was read, or is gone. */
    readonly onReadEnded: (name: string) => void
  },
): SkyhookSource {
  const { clock, random, signal } = options
  const reads = createSkyhookReads()
  const readers = new Set<string>()
  let current: Known<readonly SkyhookView[]> = unknown('the Skyhooks are not listed yet')
  let isInDoubt = false

  const reflector: Reflector<KubeObject> = startReflector<KubeObject>(transport, {
    clock,
    random,
    path: skyhooksPath,
    metadataOnly: true,
    onChange: ({ changes, isListed }) => {
      for (const { type, key, object } of changes) {
        if (type === 'deleted') reads.deleted(key)
        else if (!isListed) reads.watched(object.metadata)
      }
      refresh()
    },
    onListed(listed) {
      reads.listed(listed)
      refresh()
    },
    onFact: options.onFact,
    signal,
  })

  /** Starts a reader for each missing or outdated object without a reader, then reports what is known. */
  function refresh(): void {
    if (signal.aborted) return
    for (const name of reflector.store.keys()) if (isOutdated(name) && !readers.has(name)) startReader(name)
    report()
  }

  function report(): void {
    const state = reflector.state()
    const next = view(state)
    const isBroken = lastErrorOf(state) !== undefined
    if (isBroken === isInDoubt && isEqual(next, current)) return // a new version with another status
    isInDoubt = isBroken
    current = next
    options.wake()
  }

  function isOutdated(name: string): boolean {
    const metadata = reflector.store.get(name)?.metadata
    return metadata !== undefined && !reads.isCurrent(metadata)
  }

  /**
   * Only a change of the watch starts readers. A reader that ends never starts the next one, which would run without a
   * pause.
   */
  function startReader(name: string): void {
    readers.add(name)
    read(name).then(
      () => {
        options.onReadEnded(name)
        report()
      },
      () => undefined, // aborted
    )
  }

  /**
   * Reads until the object matches the watch, or is gone there. Pauses after every other answer: a refusal, or an
   * object that is newer than in a silent watch. Rejects when aborted.
   */
  async function read(name: string): Promise<void> {
    try {
      await sleep(clock, options.readDelayMs(), signal)
      for (let failures = 0; isOutdated(name); ) {
        const answer = await readOnce(name, failures)
        failures = answer === 'as shown' ? 0 : failures + 1
        if (answer === 'other' && failures >= minOtherAnswers) reflector.relist()
        if (failures > 0) await sleep(clock, backoffMs(failures, requestBackoff, random.number()), signal)
      }
    } finally {
      readers.delete(name) // at once: a later change needs another reader
    }
  }

  /** `other`: the API server's object is not the one that the watch showed at the time of the request. */
  async function readOnce(name: string, failures: number): Promise<'as shown' | 'other' | 'unknown'> {
    const metadata = reflector.store.get(name)?.metadata
    if (metadata === undefined) return 'as shown'
    const record = reads.begin(metadata)
    try {
      // at least as new as the watch: an API server that lags behind waits until it has that version
      const query = { resourceVersion: metadata.resourceVersion }
      const answer = await transport.json<Skyhook>('GET', `${skyhooksPath}/${name}`, { query, signal })
      const configUpdates = configUpdatesOf(answer.status) // the rest of the status is large and not needed
      record({ metadata: answer.metadata, spec: answer.spec, ...(configUpdates && { configUpdates }) })
      return reads.isCurrent(metadata) ? 'as shown' : 'other'
    } catch (error) {
      signal.throwIfAborted()
      if (!isNotFound(error) || failures > 0) options.onReadFailed(name, error) // the watch shows a deletion soon
      return isNotFound(error) || isFutureVersion(error) ? 'other' : 'unknown'
    }
  }

  function view(state: ReflectorState): Known<readonly SkyhookView[]> {
    if (state.state === 'unknown') return unknown('the Skyhooks are not listed yet')
    const views: SkyhookView[] = []
    for (const [name, { metadata }] of reflector.store) {
      const object = reads.get(name)
      // without its priority the order of all is unknown
      if (!object) return unknown(`Skyhook ${name} has not been read yet`)
      const { resourceVersion } = object.metadata // the version of the spec: each write of the status makes a new one
      const policy = options.policyOf(object.spec?.deploymentPolicy)
      views.push({
        metadata: { ...metadata, resourceVersion },
        spec: object.spec ?? {},
        budget: budgetOf(object.spec, options.defaultBudget),
        stale: !reads.isCurrent(metadata),
        ...(policy && { policy }),
        ...(object.configUpdates && { configUpdates: object.configUpdates }),
      })
    }
    return known(views)
  }

  return {
    policiesChanged: report,
    synced: reflector.synced,
    ageMs: () => reflector.ageMs(),
    current: () => current,
    isInDoubt: () => isInDoubt,
  }
}

type SkyhookObject = Pick<Skyhook, 'metadata' | 'spec'> & { readonly configUpdates?: ConfigUpdates }
type Metadata = KubeObject['metadata']

/**
 * The Skyhooks that were read, and whether they are still current in the API server. A generation identifies a spec
 * only until etcd is restored: a restored etcd counts from an older generation, and reaches the same number with
 * another spec. A restore breaks the watches. Therefore each LIST puts an object in doubt, unless it shows the version
 * that was read, or a version with the same generation that the watch has shown since.
 */
type SkyhookReads = {
  get(name: string): SkyhookObject | undefined
  /** Whether the known spec is that of the metadata, or newer. Takes annotations from the metadata. */
  isCurrent(metadata: Metadata): boolean
  /**
   * Call it before a read with the metadata of the watch, and call its result with the answer. The answer to a read
   * from before a LIST is in doubt, too.
   */
  begin(shown: Metadata): (object: SkyhookObject) => void
  watched(metadata: Metadata): void
  /** Called with all objects after a complete LIST. */
  listed(objects: Iterable<KubeObject>): void
  deleted(name: string): void
}

type Entry = {
  readonly object: SkyhookObject
  /** The latest version with this spec. */
  readonly version: string
  /** The last generation in the watch. */
  readonly shownGeneration: number
  readonly isInDoubt: boolean
}

const generationOf = ({ generation }: { readonly generation?: number | undefined }): number => generation ?? 0

function createSkyhookReads(): SkyhookReads {
  const entries = new Map<string, Entry>()
  let doubts = 0

  function putInDoubt(name: string, entry: Entry): void {
    entries.set(name, { ...entry, shownGeneration: 0, isInDoubt: true })
  }

  return {
    get: (name) => entries.get(name)?.object,

    isCurrent(metadata) {
      const entry = entries.get(metadata.name)
      return (
        entry !== undefined &&
        !entry.isInDoubt &&
        entry.object.metadata.uid === metadata.uid &&
        generationOf(entry.object.metadata) >= generationOf(metadata)
      )
    },

    begin(shown) {
      const doubtsBefore = doubts
      return (object) => {
        const { name, resourceVersion: version } = object.metadata
        const shownGeneration = Math.max(generationOf(shown), entries.get(name)?.shownGeneration ?? 0)
        entries.set(name, { object, version, shownGeneration, isInDoubt: doubts !== doubtsBefore })
      }
    },

    watched(metadata) {
      const { name, uid, resourceVersion } = metadata
      const entry = entries.get(name)
      if (entry?.object.metadata.uid !== uid) return
      const shownGeneration = generationOf(metadata)
      if (shownGeneration < entry.shownGeneration) {
        doubts++
        putInDoubt(name, entry)
      } else {
        const isOfSpec = shownGeneration === generationOf(entry.object.metadata)
        entries.set(name, { ...entry, shownGeneration, ...(isOfSpec && { version: resourceVersion }) })
      }
    },

    listed(objects) {
      doubts++
      for (const { metadata } of objects) {
        const entry = entries.get(metadata.name)
        if (entry && entry.version !== metadata.resourceVersion) putInDoubt(metadata.name, entry)
      }
    },

    deleted: (name) => void entries.delete(name),
  }
}
