import { createReadStream } from 'node:fs'
import type { Header, Pack } from 'tar-stream'

/** Bytes in memory, or a file that must still have this size when it is read. */
export type EntryContent = Buffer | { readonly file: string; readonly sizeBytes: number }

/**
 * Adds one entry and waits until it is in the archive. The owner is root and the time the epoch, so that equal content
 * gives equal bytes.
 */
export function addEntry(
  archive: Pack,
  header: Partial<Header> & { name: string; mode: number },
  content: EntryContent = Buffer.alloc(0),
): Promise<void> {
  const complete = { uid: 0, gid: 0, mtime: new Date(0), ...header }
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null) => (error ? reject(error) : resolve())
    if (Buffer.isBuffer(content)) {
      archive.entry(complete, content, done)
      return
    }
    const sink = archive.entry({ ...complete, size: content.sizeBytes }, done)
    sink.on('error', reject)
    const source = createReadStream(content.file)
    source.on('error', (error) => sink.destroy(error))
    source.pipe(sink as unknown as NodeJS.WritableStream)
  })
}
