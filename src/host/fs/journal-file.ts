/**
 * The agent's memory on the host: one JSON document, replaced whole.
 *
 * Invariant: an unreadable document is never overwritten. A damaged file is moved aside, a document of a newer agent
 * stays where it is and writing is refused.
 */
import { dirname } from 'node:path'
import type { HostRoot } from './host-root.ts'
import { isTemporary } from './temporary.ts'
import type { Clock } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'

export type Versioned = { readonly v: number }

export type JournalRead<T> =
  | { readonly state: 'absent' }
  | { readonly state: 'read'; readonly document: T }
  | {
      readonly state: 'unreadable'
      readonly why: string
      /** Where the damaged file is now; absent when it was left alone (a newer version). */
      readonly movedTo?: string
    }

export type JournalFile<T extends Versioned> = {
  /** Reads the file at start. A damaged file is moved aside. Rejects on a disk error: call it again. */
  read(): Promise<JournalRead<T>>
  /**
   * Makes `document` what the next agent reads, on disk when it resolves. Of calls that queue behind a running write,
   * only the last document is written: each document is complete. Rejects on a disk error, and after `read` found a
   * newer version or could not read at all.
   */
  write(document: T): Promise<void>
}

/**
 * What the agent must find again: journal, results of steps, progress of interrupts, files of root_dir. No setting
 * moves it, so no change of a setting can lose it.
 */
export const agentFolder = '/var/lib/skyhook/.agent'

export const journalPath = `${agentFolder}/journal.json`

/** `version` is the `v` that this agent reads and writes. */
export function openJournalFile<T extends Versioned>(
  root: HostRoot,
  options: {
    readonly version: T['v']
    readonly clock: Clock
    /** Whether it has the fields of every document of this version; a document without them is damaged. */
    readonly isWhole?: (document: T) => boolean
  },
): JournalFile<T> {
  const { version, clock, isWhole } = options
  let refusalReason: string | undefined
  let queuedWrite: { document: T; done: Promise<void> } | undefined
  let lastWrite: Promise<void> = Promise.resolve()

  async function read(): Promise<JournalRead<T>> {
    refusalReason = undefined
    await removeTemporaryFiles(root)
    let content: string
    try {
      content = (await root.readFile(journalPath)).toString()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { state: 'absent' }
      refusalReason = `cannot read ${journalPath}: ${messageOf(error)}`
      throw error
    }
    const parsed = parse(content)
    if ('document' in parsed && parsed.document.v > version) {
      const versions = `version ${parsed.document.v}, this agent reads ${version}`
      refusalReason = `${journalPath} was written by a newer agent (${versions})`
      return { state: 'unreadable', why: refusalReason }
    }
    const understood = 'document' in parsed ? understand(parsed.document) : parsed
    if ('document' in understood) return { state: 'read', document: understood.document }
    const movedTo = `${journalPath}.unreadable-${clock.wallMs()}`
    try {
      await root.rename(journalPath, movedTo)
    } catch (error) {
      refusalReason = `${journalPath} is damaged (${understood.problem}) and cannot be moved aside: ${messageOf(error)}`
      return { state: 'unreadable', why: refusalReason }
    }
    return { state: 'unreadable', why: `${journalPath}: ${understood.problem}`, movedTo }
  }

  function understand(found: Versioned): { document: T } | { problem: string } {
    if (found.v < version) return { problem: `has version ${found.v}, which no agent has written` }
    const document = found as T
    return isWhole?.(document) === false ? { problem: 'is not a journal' } : { document }
  }

  async function replace(content: string): Promise<void> {
    try {
      await root.writeFileDurable(journalPath, content, 0o600)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      await root.mkdirp(dirname(journalPath), 0o700) // a new host, or someone removed the agent's folder
      await root.writeFileDurable(journalPath, content, 0o600)
    }
  }

  function write(document: T): Promise<void> {
    if (refusalReason !== undefined) return Promise.reject(new Error(`the journal is not written: ${refusalReason}`))
    if (queuedWrite) {
      queuedWrite.document = document
      return queuedWrite.done
    }
    const next = { document, done: lastWrite }
    queuedWrite = next
    next.done = lastWrite
      .catch(() => {}) // reported to its own callers
      .then(() => {
        queuedWrite = undefined
        return replace(`${JSON.stringify(next.document)}\n`)
      })
    lastWrite = next.done
    return next.done
  }

  return { read, write }
}

function parse(content: string): { document: Versioned } | { problem: string } {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch (error) {
    return { problem: `not JSON (${messageOf(error)})` }
  }
  const version = (value as { v?: unknown } | null)?.v
  if (typeof version !== 'number' || !Number.isInteger(version)) return { problem: 'has no version number `v`' }
  return { document: value as Versioned }
}

/**
 * Removes temporary files, of the journal and others, that a crash during a write left in the agent's folder. If the
 * folder cannot be read, reading the journal reports why.
 */
async function removeTemporaryFiles(root: HostRoot): Promise<void> {
  const folder = dirname(journalPath)
  for (const name of await root.readdir(folder).catch(() => []))
    if (isTemporary(name)) await root.remove(`${folder}/${name}`).catch(() => undefined) // the next write reports why
}
