import type { JournalFile } from '../../host/fs/journal-file.ts'
import { emptyJournal, type Journal } from '../../schemas/journal.ts'
import { messageOf } from '../../schemas/json.ts'
import { errorField, type Log } from '../telemetry/log.ts'

/** The agent's memory and its file: only what is on the disk counts. */
export type JournalStore = {
  readonly current: () => Journal
  /** Why it cannot be written; nothing starts until it can. */
  readonly error: () => string | undefined
  /** Reads the file, once at start. An unreadable file counts as empty: the Node shows a copy. */
  load(): Promise<void>
  /** False if it could not be written; then the previous one stays current. */
  write(journal: Journal): Promise<boolean>
}

export function createJournalStore(file: JournalFile<Journal>, log: Log): JournalStore {
  let current = emptyJournal('')
  let lastError: string | undefined
  return {
    current: () => current,
    error: () => lastError,
    async load() {
      const found = await file.read()
      if (found.state === 'read') current = found.document
      if (found.state === 'unreadable')
        log.error({ detail: found.why }, 'journal cannot be read, using the state of the Node')
    },
    async write(journal) {
      try {
        await file.write(journal)
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
