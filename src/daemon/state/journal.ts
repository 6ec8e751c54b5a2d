import type { JournalFile } from '../../host/fs/journal-file.ts'
import { emptyJournal, type Journal, type StoredJournal } from '../../schemas/journal.ts'
import { messageOf } from '../../schemas/json.ts'
import { errorField, type Log } from '../telemetry/log.ts'

/** The agent's memory and its file. Only content on the disk is current. */
export type JournalStore = {
  readonly current: () => Journal
  /** Why it cannot be written; nothing starts until it can. */
  readonly error: () => string | undefined
  /**
   * False if there was an unreadable journal: it is unknown which files on this host are in use, and nothing is removed
   * until an agent has read a journal.
   */
  readonly isComplete: () => boolean
  /**
   * Reads the file once at start. A damaged file is moved aside and counts as empty, because the Node has a copy of the
   * state. If the file stays in place, this agent waits.
   */
  load(): Promise<void>
  /** False if the write failed: the previous journal stays current. */
  write(journal: Journal): Promise<boolean>
}

/** How the times of a journal are stored for another boot. */
export type StoredTimes = {
  readonly store: (journal: Journal) => StoredJournal
  /** Converts the journal of an earlier agent for this one. */
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
