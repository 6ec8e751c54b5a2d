import type { JournalFile } from '../../host/fs/journal-file.ts'
import { emptyJournal, type Journal, type StoredJournal } from '../../schemas/journal.ts'
import { messageOf } from '../../schemas/json.ts'
import { errorField, type Log } from '../telemetry/log.ts'

/** The agent's memory and its file: only what is on the disk counts. */
export type JournalStore = {
  readonly current: () => Journal
  /** Why it cannot be written; nothing starts until it can. */
  readonly error: () => string | undefined
  /**
   * False if there was a journal that could not be read: nobody knows what belongs to whom on this host, and nothing is
   * removed from it until an agent has read a journal.
   */
  readonly isComplete: () => boolean
  /**
   * Reads the file, once at start. A damaged one is kept aside and counts as empty: the Node shows a copy. One that is
   * left alone makes this agent wait.
   */
  load(): Promise<void>
  /** False if it could not be written; then the previous one stays current. */
  write(journal: Journal): Promise<boolean>
}

/** How the times of a journal are stored for another boot. */
export type StoredTimes = {
  readonly store: (journal: Journal) => StoredJournal
  /** Makes the journal of an earlier agent this one's. */
  readonly carry: (stored: StoredJournal) => Journal
}

export function createJournalStore(file: JournalFile<StoredJournal>, log: Log, times: StoredTimes): JournalStore {
  let current = emptyJournal('')
  let lastError: string | undefined
  let isComplete = true
  return {
    current: () => current,
    error: () => lastError,
    isComplete: () => isComplete,
    async load() {
      const found = await file.read()
      if (found.state === 'read') current = times.carry(found.document)
      if (found.state !== 'unreadable') return
      isComplete = false
      if (found.movedTo === undefined) lastError = found.why
      const { why: detail, movedTo } = found
      if (movedTo === undefined) log.error({ detail }, 'journal cannot be read, waiting')
      else log.error({ detail, movedTo }, 'journal is damaged, starting over')
    },
    async write(journal) {
      try {
        await file.write(times.store(journal))
      } catch (error) {
        const message = messageOf(error)
        if (message !== lastError) log.error(errorField(error), 'journal cannot be written, waiting until it can')
        lastError = message
        return false
      }
      current = journal
      lastError = undefined
      return true
    },
  }
}
