/** Content of files as bytes, in pieces: packages may carry large binaries, and the agent's memory is small. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import {
  copyFile as copyContent,
  type FileHandle,
  lstat,
  open,
  readlink,
  rename,
  symlink,
  unlink,
} from 'node:fs/promises'
import { ignoreNotFound, withPath } from './errors.ts'
import { namingTarget, temporaryName } from './temporary.ts'

const chunkBytes = 256 << 10
/** Opening a pipe must not block until its other end opens. */
export const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const newFileFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

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

/** At most `bytes` bytes from `offset` on, and the length of the whole file at that time. */
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

/** A program that writes faster than this process copies does not delay it. */
const maxFollowedBytes = 64 << 20

/**
 * Replaces the bytes from `from` up to `to` by fewer others, in place: a program that appends to the file continues.
 * What it appends during the replacement may be lost. Rejects if the file has another name, because another program may
 * use it.
 */
export async function replaceBytes(
  path: string,
  { from, to }: { readonly from: number; readonly to: number },
  bytes: Buffer,
): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const { nlink, size } = await file.stat()
    if (nlink > 1) throw new Error(`${path} has ${nlink} names, and is left as it is`)
    await file.write(bytes, 0, bytes.length, from)
    let target = from + bytes.length
    const buffer = Buffer.allocUnsafe(chunkBytes)
    for (let source = to; source < size + maxFollowedBytes; ) {
      const { bytesRead } = await file.read(buffer, 0, chunkBytes, source)
      if (bytesRead === 0) break
      await file.write(buffer, 0, bytesRead, target)
      source += bytesRead
      target += bytesRead
    }
    await file.truncate(target)
  } finally {
    await file.close()
  }
}

export type CopyOptions = {
  readonly mode: number
  /** Give the copy this modification time. */
  readonly mtime?: Date
  /** Waits for the disk. Otherwise the copy may be empty after a power cut. */
  readonly sync?: (copy: FileHandle) => Promise<void>
}

/**
 * Replaces `to` by a copy of `from`, whole or not at all. Shares blocks where the file system can. The copy is changed
 * by its descriptor only: its temporary name may be another user's file by then.
 */
export async function copyFile(
  from: string,
  to: string,
  { mode, mtime, sync }: CopyOptions,
  token: string,
): Promise<void> {
  const source = await open(from, readFlags)
  try {
    await replaceFile(to, token, async (copy) => {
      const [sourceAt, copyAt] = [`/proc/self/fd/${source.fd}`, `/proc/self/fd/${copy.fd}`]
      await copyContent(sourceAt, copyAt, constants.COPYFILE_FICLONE).catch((error: unknown) => {
        throw withPath(withPath(error, sourceAt, from), copyAt, to)
      })
      await copy.chmod(mode)
      if (mtime) await copy.utimes(mtime, mtime)
      await sync?.(copy)
    })
  } finally {
    await source.close()
  }
}

/** Replaces a file by a new one that `fill` fills, whole or not at all. A link in its place is replaced. */
export async function replaceFile(
  path: string,
  token: string,
  fill: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const temporary = temporaryName(path, token)
  const file = await open(temporary, newFileFlags, 0o600).catch((error: unknown) => {
    throw namingTarget(error, temporary, path)
  })
  try {
    try {
      await fill(file)
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => {}) // missing when the rename succeeded
    throw namingTarget(error, temporary, path)
  }
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

/** The target of a symbolic link; undefined for everything else and for a missing path. */
export async function readLink(path: string): Promise<string | undefined> {
  const stats = await lstat(path).catch(ignoreNotFound)
  return stats?.isSymbolicLink() ? await readlink(path) : undefined
}

/** Makes `path` a link to `target`. A file or link in its place is replaced in one go; rejects where a folder is. */
export async function replaceLink(path: string, target: string, token: string): Promise<void> {
  const existing = await lstat(path).catch(ignoreNotFound)
  if (existing?.isSymbolicLink() && (await readlink(path)) === target) return
  const temporary = temporaryName(path, token)
  await symlink(target, temporary).catch((error: unknown) => {
    throw namingTarget(error, temporary, path)
  })
  try {
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw namingTarget(error, temporary, path)
  }
}
