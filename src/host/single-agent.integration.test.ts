import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock, systemRandom } from '../daemon/platform/system-clock.ts'
import { createHostRoot, type HostRoot } from './fs/host-root.ts'
import { agentSocketPath, claimSingleAgent, type SingleAgentClaim } from './single-agent.ts'

let mount: string
let root: HostRoot
const claims: SingleAgentClaim[] = []
const children: ChildProcess[] = []
beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), 'agent-'))
  root = createHostRoot(mount, systemRandom)
})
afterEach(async () => {
  for (const claim of claims.splice(0)) await claim.release()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(mount, { recursive: true })
})

async function claim(description: string, received: string[] = [], signal?: AbortSignal): Promise<SingleAgentClaim> {
  const claim = await claimSingleAgent({
    root,
    clock: systemClock,
    random: systemRandom,
    description,
    onWaiting: (holder) => received.push(holder),
    ...(signal ? { signal } : {}),
  })
  claims.push(claim)
  return claim
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
    const received: string[] = []
    let second: SingleAgentClaim | undefined
    const waiting = claim('agent two', received).then((granted) => (second = granted))
    await expect.poll(() => received).toEqual(['agent one'])
    expect(second).toBeUndefined()
    await first.release()
    await waiting
    expect(readdirSync(join(mount, 'run/skyhook'))).toEqual(['agent.sock'])
  })

  test('the successor of a killed agent does not wait', async () => {
    const child = await holderProcess()
    const received: string[] = []
    const waiting = claim('successor', received)
    await expect.poll(() => received).toEqual(['the child'])
    child.kill('SIGKILL')
    await waiting
  })

  test('an agent takes over the socket of a dead one', async () => {
    const child = await holderProcess()
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    expect(existsSync(join(mount, agentSocketPath))).toBe(true)
    const received: string[] = []
    await claim('successor', received)
    expect(received).toEqual([])
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
      await new Promise((resolve) => setTimeout(resolve, 5))
      holders--
      await granted.release()
    })
    await Promise.all(all)
    expect(maxHolders).toBe(1)
    expect(readdirSync(join(mount, 'run/skyhook'))).toEqual([])
  })

  test('waiting for the claim can be aborted', async () => {
    await claim('agent one')
    await expect(claim('agent two', [], AbortSignal.timeout(30))).rejects.toThrow('timeout')
  })

  test('claiming can be aborted at any moment', async () => {
    await claim('agent one')
    for (let turns = 0; turns < 40; turns++) {
      const abort = new AbortController()
      void abortAfter(turns, abort)
      await expect(claim('agent two', [], abort.signal)).rejects.toThrow('no more')
    }
  })
})

async function abortAfter(turns: number, abort: AbortController): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
  abort.abort(new Error('no more'))
}
