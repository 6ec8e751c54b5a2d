/**
 * One agent per host: the one that listens on a socket in the host's /run. A rolled DaemonSet may have two pods for a
 * moment, and two agents would each believe their own journal.
 *
 * The kernel ends the claim with the process. What stays is the socket's file, which refuses connections: the next agent
 * removes it. Two that find the same dead file could remove each other's new one, so a claim over a dead file is looked at
 * again before it counts.
 */
import { randomBytes } from 'node:crypto'
import { link, lstat, unlink } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostRoot } from './fs/host-root.ts'

export const AGENT_SOCKET_PATH = '/run/skyhook/agent.sock'

/** Longer than another agent needs between looking at the dead file and removing it. */
const LOOK_AGAIN_MS = 50
const RETRY_MS = 500

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
  const { root, path = AGENT_SOCKET_PATH, signal } = options
  await root.mkdirp(dirname(path), 0o700)
  const socketPath = await root.resolve(path, 'keep')
  let overDeadFile = false
  for (;;) {
    signal?.throwIfAborted()
    const claim = await take(socketPath, options.description)
    if (claim) {
      if (!overDeadFile || (await stillOurs(socketPath, claim.inode))) return claim
      await claim.release()
      continue
    }
    const found = await inodeOf(socketPath)
    const holder = await waitForHolder(socketPath, options.onWaiting, signal)
    if (holder === 'dead' && found !== undefined && (await inodeOf(socketPath)) === found) {
      await unlink(socketPath).catch(() => {}) // another agent was quicker
      overDeadFile = true
    } else if (holder === 'unclear') await delay(RETRY_MS, undefined, signal ? { signal } : {})
  }
}

async function stillOurs(path: string, inode: number): Promise<boolean> {
  await delay(LOOK_AGAIN_MS)
  return (await inodeOf(path)) === inode
}

/** Listens and takes the name; undefined when it is taken. */
async function take(path: string, description: string): Promise<(SingleAgentClaim & { readonly inode: number }) | undefined> {
  // Bound under a name of its own and then linked: a link is taken by one only, and closing a server removes the name that it
  // was bound to, whoever has it by then.
  const ownPath = `${path}.${randomBytes(4).toString('hex')}`
  const waiting = new Set<Socket>()
  const server = createServer((socket) => {
    waiting.add(socket) // held open: its end tells the other agent of ours
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => waiting.delete(socket))
    socket.write(`${description}\n`)
  })
  await listen(server, ownPath)
  const inode = (await lstat(ownPath)).ino
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of waiting) socket.destroy()
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
): Promise<'gone' | 'dead' | 'unclear'> {
  signal?.throwIfAborted() // an abort before the listener below would not be heard
  const socket = connect(path)
  const outcome = Promise.withResolvers<'gone' | 'dead' | 'unclear'>()
  const onAbort = () => outcome.reject(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  let told = ''
  socket.on('data', (chunk: Buffer) => {
    if (told.includes('\n') || told.length > 1000) return
    told += chunk.toString()
    if (told.includes('\n')) onWaiting(told.slice(0, told.indexOf('\n')))
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED') outcome.resolve('dead')
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
