import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { createVirtualClock } from '../../test/kit/virtual-clock.ts'
import { systemRandom } from '../daemon/platform/system-clock.ts'
import type { Clock } from '../schemas/clock.ts'
import { createHostRoot, type HostRoot } from './fs/host-root.ts'
import { agentSocketPath, claimSingleAgent, type SingleAgentClaim } from './single-agent.ts'

let mount: string
/** Operations on files. */
let underWay = 0
const isUnderWay = (): boolean => underWay > 0
let root: HostRoot
const claims: SingleAgentClaim[] = []
const children: ChildProcess[] = []
beforeEach(() => {
  mount = temporaryFolder()
  root = counted(createHostRoot(mount, systemRandom))
})
afterEach(async () => {
  for (const claim of claims.splice(0)) await claim.release()
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

function counted(root: HostRoot): HostRoot {
  const count = async <T>(operation: Promise<T>): Promise<T> => {
    underWay++
    return await operation.finally(() => underWay--)
  }
  return {
    ...root,
    lstat: (path) => count(root.lstat(path)),
    link: (path, newPath) => count(root.link(path, newPath)),
    remove: (path) => count(root.remove(path)),
  }
}

/** No agent is slower between two operations than another one waits. */
const clock: Clock = {
  ...createVirtualClock(),
  startTimer(_, callback) {
    let isCanceled = false
    void (async () => {
      await setImmediate()
      while (isUnderWay()) await setImmediate()
      if (!isCanceled) callback()
    })()
    return () => void (isCanceled = true)
  },
}

/** `onWaiting` hears whom it waits for. */
async function claim(
  description: string,
  onWaiting: (holder: string) => void = () => undefined,
  signal?: AbortSignal,
): Promise<SingleAgentClaim> {
  const claim = await claimSingleAgent({
    root,
    clock,
    random: systemRandom,
    description,
    onWaiting,
    ...(signal ? { signal } : {}),
  })
  claims.push(claim)
  return claim
}

/** A claim that has to wait, once it knows for whom. */
async function waitingClaim(description: string, signal?: AbortSignal) {
  const waitsFor = Promise.withResolvers<string>()
  const granted = claim(description, waitsFor.resolve, signal)
  return { holder: await Promise.race([waitsFor.promise, granted.then(() => undefined)]), granted }
}

/** Another process that holds the claim until it is killed. */
async function holderProcess(): Promise<ChildProcess> {
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).pathname)
  const program = `import { createHostRoot } from ${module('./fs/host-root.ts')}
import { claimSingleAgent } from ${module('./single-agent.ts')}
import { systemClock as clock, systemRandom as random } from ${module('../daemon/platform/system-clock.ts')}
const root = createHostRoot(${JSON.stringify(mount)}, random)
await claimSingleAgent({ root, clock, random, description: 'the child', onWaiting() {} })
console.log('claimed')
setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  return child
}

describe('the single agent of a host', () => {
  test('the second agent learns who holds the claim and gets it after the first', async () => {
    const first = await claim('agent one')
    const { holder, granted } = await waitingClaim('agent two')
    expect(holder).toBe('agent one')
    await first.release()
    await granted
    expect(readdirSync(join(mount, 'run/skyhook'))).toEqual(['agent.sock'])
  })

  test('the successor of a killed agent does not wait', async () => {
    const child = await holderProcess()
    const { holder, granted } = await waitingClaim('successor')
    expect(holder).toBe('the child')
    child.kill('SIGKILL')
    await granted
  })

  test('an agent takes over the socket of a dead one', async () => {
    const child = await holderProcess()
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    expect(existsSync(join(mount, agentSocketPath))).toBe(true)
    await claim('successor', (holder) => expect.fail(`it waits for ${holder}`))
  })

  test('only one of many agents that find a dead socket holds the claim', async () => {
    const child = await holderProcess()
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    let holders = 0
    let maxHolders = 0
    const all = Array.from({ length: 12 }, async (_, index) => {
      const granted = await claim(`agent ${index}`)
      maxHolders = Math.max(maxHolders, ++holders)
      for (let turns = 0; turns < 20; turns++) await setImmediate()
      holders--
      await granted.release()
    })
    await Promise.all(all)
    expect(maxHolders).toBe(1)
    expect(readdirSync(join(mount, 'run/skyhook'))).toEqual([])
  })

  test('waiting for the claim can be aborted', async () => {
    await claim('agent one')
    const abort = new AbortController()
    const { granted } = await waitingClaim('agent two', abort.signal)
    abort.abort(new Error('enough'))
    await expect(granted).rejects.toThrow('enough')
  })

  test('claiming can be aborted at any moment', async () => {
    await claim('agent one')
    for (let turns = 0; turns < 40; turns++) {
      const abort = new AbortController()
      void abortAfter(turns, abort)
      await expect(claim('agent two', undefined, abort.signal)).rejects.toThrow('the wait ended')
    }
  })
})

async function abortAfter(turns: number, abort: AbortController): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await setImmediate()
  abort.abort(new Error('the wait ended'))
}
