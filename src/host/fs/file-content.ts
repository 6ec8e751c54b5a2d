/** Content of files as bytes, in pieces: packages may carry large binaries, and the agent's memory is small. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, copyFile as copyContent, lstat, open, rename, unlink, utimes } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFile, syncFolder } from './fsync.ts'
import { namingTarget, temporaryName } from './temporary.ts'

const chunkBytes = 256 << 10
/** Opening a pipe must not wait for its other end. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** In hex. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of readChunks(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** True when both are regular files of the same bytes. */
export async function haveSameContent(left: string, right: string): Promise<boolean> {
  const [a, b] = await Promise.all([lstat(left), lstat(right)])
  return a.isFile() && b.isFile() && a.size === b.size && (await sha256OfFile(left)) === (await sha256OfFile(right))
}

/** At most `bytes` bytes: the first ones, or the last ones. */
export async function readPart(path: string, part: 'start' | 'end', bytes: number): Promise<Buffer> {
  const file = await open(path, readFlags)
  try {
    const start = part === 'start' ? 0 : Math.max(0, (await file.stat()).size - bytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, start)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** At most `bytes` bytes from `offset` on, and how long the whole file is at that moment. */
export async function readFrom(
  path: string,
  offset: number,
  bytes: number,
): Promise<{ readonly bytes: Buffer; readonly sizeBytes: number }> {
  const file = await open(path, readFlags)
  try {
    const { size } = await file.stat()
    const length = Math.max(0, Math.min(bytes, size - offset))
    if (length === 0) return { bytes: Buffer.alloc(0), sizeBytes: size }
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
    return { bytes: buffer.subarray(0, bytesRead), sizeBytes: size }
  } finally {
    await file.close()
  }
}

export type CopyOptions = {
  readonly mode: number
  /** Wait for the disk. Without it the copy may be empty after a power cut. */
  readonly durable: boolean
  /** Give the copy this modification time. */
  readonly mtime?: Date
}

/** Replaces `to` by a copy of `from`, whole or not at all. Shares blocks where the file system can. */
export async function copyFile(
  from: string,
  to: string,
  { mode, durable, mtime }: CopyOptions,
  token: string,
): Promise<void> {
  const temporary = temporaryName(to, token)
  try {
    await copyContent(from, temporary, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
    await chmod(temporary, mode)
    if (mtime) await utimes(temporary, mtime, mtime)
    if (durable) await syncFile(temporary)
    await rename(temporary, to)
  } catch (error) {
    const isOurs = (error as NodeJS.ErrnoException).code !== 'EEXIST'
    if (isOurs) await unlink(temporary).catch(() => {}) // not made, or renamed already
    throw namingTarget(error, temporary, to)
  }
  if (durable) await syncFolder(dirname(to))
}

async function* readChunks(path: string): AsyncGenerator<Buffer> {
  const file = await open(path, readFlags)
  try {
    const buffer = Buffer.allocUnsafe(chunkBytes)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, chunkBytes)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}
