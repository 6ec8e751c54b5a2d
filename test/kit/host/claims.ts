/** Who may be the only agent of a simulated host: the claim ends with its process. */
import type { SingleAgentClaim } from '../../../src/host/single-agent.ts'
import type { AgentProcess } from './agent-process.ts'

export type ClaimRequest = {
  readonly description: string
  readonly onWaiting: (holder: string) => void
  readonly signal: AbortSignal
}

export type Claims = {
  /** Resolves as soon as nobody else holds the host; rejects when the signal aborts. */
  claim(process: AgentProcess, request: ClaimRequest): Promise<SingleAgentClaim>
  holder(): AgentProcess | undefined
}

export function createClaims(): Claims {
  let held: { readonly process: AgentProcess; readonly description: string } | undefined
  const waiters = new Set<() => void>()

  const release = (process: AgentProcess): void => {
    if (held?.process !== process) return
    held = undefined
    for (const tryAgain of waiters) tryAgain()
  }

  return {
    holder: () => held?.process,
    claim: (process, { description, onWaiting, signal }) =>
      new Promise((resolve, reject) => {
        const stopWaiting = (): void => {
          waiters.delete(tryAgain)
          signal.removeEventListener('abort', onAbort)
        }
        const onAbort = (): void => {
          stopWaiting()
          reject(signal.reason as Error)
        }
        const tryAgain = (): void => {
          if (held !== undefined) return onWaiting(held.description)
          stopWaiting()
          held = { process, description }
          resolve({ release: async () => release(process) })
        }
        if (signal.aborted) return onAbort()
        signal.addEventListener('abort', onAbort, { once: true })
        waiters.add(tryAgain)
        process.onEnd(() => {
          stopWaiting()
          release(process)
        })
        tryAgain()
      }),
  }
}
