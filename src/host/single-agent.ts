/**
 * One agent per host: the one that listens on a socket in the host's /run. A rolled DaemonSet may have two pods for a
 * moment, and two agents would each believe their own journal.
 *
 * The kernel ends the claim with the process. What stays is the socket's file, which refuses connections: the next
 * agent removes it. Two that find the same dead file could remove each other's new one, so a claim over a dead file is
 * looked at again before it counts.
 */
import { randomBytes } from 'node:crypto'
import { link, lstat, unlink } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostRoot } from './fs/host-root.ts'

export const agentSocketPath = '/run/skyhook/agent.sock'

/** Longer than another agent needs between looking at the dead file and removing it. */
const recheckDelayMs = 50
const retryDelayMs = 500

export type SingleAgentClaim = {
  /** Ends the claim; whoever waits for it gets it at once. */
  release(): Promise<void>
}

/**
 * Waits until this is the host's only agent. `description` is one line about it for the next one that asks; `onWaiting`
 * hears the present holder's. Rejects when `signal` aborts.
 */
export async function claimSingleAgent(options: {
  readonly root: HostRoot
  readonly description: string
  readonly onWaiting: (holder: string) => void
  readonly path?: string
  readonly signal?: AbortSignal
}): Promise<SingleAgentClaim> {
  const { root, path = agentSocketPath, signal } = options
  await root.mkdirp(dirname(path), 0o700)
  const socketPath = await root.resolve(path, 'keep')
  let replacedStaleSocket = false
  for (;;) {
    signal?.throwIfAborted()
    const claim = await tryClaim(socketPath, options.description)
    if (claim) {
      if (!replacedStaleSocket || (await isStillOurs(socketPath, claim.inode))) return claim
      await claim.release()
      continue
    }
    const foundInode = await inodeOf(socketPath)
    const holder = await waitForHolder(socketPath, options.onWaiting, signal)
    if (holder === 'stale' && foundInode !== undefined && (await inodeOf(socketPath)) === foundInode) {
      await unlink(socketPath).catch(() => {}) // another agent was quicker
      replacedStaleSocket = true
    } else if (holder === 'unclear') await delay(retryDelayMs, undefined, signal ? { signal } : {})
  }
}

async function isStillOurs(path: string, inode: number): Promise<boolean> {
  await delay(recheckDelayMs)
  return (await inodeOf(path)) === inode
}

/** Listens and takes the name; undefined when it is taken. */
async function tryClaim(
  path: string,
  description: string,
): Promise<(SingleAgentClaim & { readonly inode: number }) | undefined> {
  // Bound under a name of its own and then linked: a link is taken by one only, and closing a server removes the name
  // that it
  // was bound to, whoever has it by then.
  const ownPath = `${path}.${randomBytes(4).toString('hex')}`
  const waiters = new Set<Socket>()
  const server = createServer((socket) => {
    waiters.add(socket) // held open: its end tells the other agent of ours
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => waiters.delete(socket))
    socket.write(`${description}\n`)
  })
  await listen(server, ownPath)
  const inode = (await lstat(ownPath)).ino
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of waiters) socket.destroy()
    await closed
  }
  try {
    await link(ownPath, path)
  } catch (error) {
    await close()
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  }
  await unlink(ownPath)
  return {
    inode,
    async release() {
      if ((await inodeOf(path)) === inode) await unlink(path)
      await close()
    },
  }
}

async function listen(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function inodeOf(path: string): Promise<number | undefined> {
  return (await lstat(path).catch(() => undefined))?.ino
}

/** Stays connected to the holder until it is `gone`. `dead`: nobody listens. `unclear`: try again later. */
async function waitForHolder(
  path: string,
  onWaiting: (holder: string) => void,
  signal?: AbortSignal,
): Promise<'gone' | 'stale' | 'unclear'> {
  signal?.throwIfAborted() // an abort before the listener below would not be heard
  const socket = connect(path)
  const outcome = Promise.withResolvers<'gone' | 'stale' | 'unclear'>()
  const onAbort = () => outcome.reject(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  let announcement = ''
  socket.on('data', (chunk: Buffer) => {
    if (announcement.includes('\n') || announcement.length > 1000) return
    announcement += chunk.toString()
    if (announcement.includes('\n')) onWaiting(announcement.slice(0, announcement.indexOf('\n')))
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED') outcome.resolve('stale')
    else outcome.resolve(error.code === 'ENOENT' || error.code === 'ECONNRESET' ? 'gone' : 'unclear')
  })
  socket.on('close', () => outcome.resolve('gone'))
  try {
    return await outcome.promise
  } finally {
    signal?.removeEventListener('abort', onAbort)
    socket.destroy()
  }
}
