/**
 * One agent per host: the one that listens on a socket in the host's /run. A rolling update of the DaemonSet may run
 * two pods for a short time, and two agents would each trust their own journal.
 *
 * The kernel ends the claim with the process. The socket's file stays and refuses connections; the next agent removes
 * it. Two agents that find the same dead file could remove each other's new one, so a claim over a dead file is checked
 * again before it counts.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { type Clock, type Random, sleep } from '../schemas/clock.ts'
import type { HostRoot } from './fs/host-root.ts'

export const agentSocketPath = '/run/skyhook/agent.sock'

/** Longer than another agent needs from finding the dead file to removing it. */
const recheckDelayMs = 50
const retryDelayMs = 500

export type SingleAgentClaim = {
  /** Ends the claim; a waiting agent gets it at once. */
  release(): Promise<void>
}

export type ClaimOptions = {
  readonly root: HostRoot
  readonly clock: Clock
  readonly random: Random
  readonly description: string
  readonly onWaiting: (holder: string) => void
  readonly signal?: AbortSignal
}

/**
 * Waits until this is the host's only agent. `description` is one line about it for the next agent; `onWaiting` gets
 * the line of the current holder. Rejects when `signal` aborts.
 */
export async function claimSingleAgent(options: ClaimOptions): Promise<SingleAgentClaim> {
  const { root, clock, onWaiting, signal } = options
  await root.mkdirp(dirname(agentSocketPath), 0o700)
  let replacedStaleSocket = false
  for (;;) {
    signal?.throwIfAborted()
    const claim = await tryClaim(options)
    if (claim) {
      if (!replacedStaleSocket || (await isStillOurs(options, claim.inode))) return claim
      await claim.release()
      continue
    }
    const foundInode = await inodeOf(root)
    const holder = await waitForHolder(root, onWaiting, signal)
    if (holder === 'stale' && foundInode !== undefined && (await inodeOf(root)) === foundInode) {
      await root.remove(agentSocketPath)
      replacedStaleSocket = true
    } else if (holder === 'unclear') await sleep(clock, retryDelayMs, signal)
  }
}

async function isStillOurs({ root, clock }: ClaimOptions, inode: number | undefined): Promise<boolean> {
  await sleep(clock, recheckDelayMs)
  return (await inodeOf(root)) === inode
}

/** Listens and takes the name; undefined when it is taken. */
async function tryClaim({
  root,
  random,
  description,
}: ClaimOptions): Promise<(SingleAgentClaim & { readonly inode: number | undefined }) | undefined> {
  // Bound under its own name and then linked: only one agent can create the link. Closing a server removes the name
  // that it was bound to, even if another agent has taken that name.
  const ownPath = `${agentSocketPath}.${random.hex(4)}`
  const waiters = new Set<Socket>()
  const server = createServer((socket) => {
    waiters.add(socket) // held open: the other agent sees by its end that this one exited
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => waiters.delete(socket))
    socket.write(`${description}\n`)
  })
  await listen(server, await root.resolve(ownPath, 'keep'))
  const inode = await inodeOf(root, ownPath)
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of waiters) socket.destroy()
    await closed
  }
  try {
    await root.link(ownPath, agentSocketPath)
  } catch (error) {
    await close()
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  }
  await root.remove(ownPath).catch(() => undefined) // harmless, and removed when the server closes
  return {
    inode,
    async release() {
      if ((await inodeOf(root)) === inode) await root.remove(agentSocketPath)
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

async function inodeOf(root: HostRoot, path = agentSocketPath): Promise<number | undefined> {
  return (await root.lstat(path).catch(() => undefined))?.ino
}

/** Stays connected to the holder until it is `gone`. `dead`: nobody listens. `unclear`: try again later. */
async function waitForHolder(
  root: HostRoot,
  onWaiting: (holder: string) => void,
  signal?: AbortSignal,
): Promise<'gone' | 'stale' | 'unclear'> {
  const socketPath = await root.resolve(agentSocketPath, 'keep')
  signal?.throwIfAborted() // the listener below would miss an earlier abort
  const socket = connect(socketPath)
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
