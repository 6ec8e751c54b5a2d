/** Tests of one file that run at the same time, each with its own nodes. */
import type { NodeName } from './cluster.ts'

export type OnTestFinished = (cleanUp: () => Promise<void> | void) => void

const lockTails = new Map<NodeName, Promise<void>>()

/**
 * Returns once no other test of the file has these nodes, and keeps them until this test and its clean-up are finished:
 * call it first. Name several in order, or two tests may wait for each other.
 */
export async function lockNodes(onTestFinished: OnTestFinished, ...nodes: readonly NodeName[]): Promise<void> {
  for (const node of nodes) {
    const before = lockTails.get(node)
    const { promise, resolve } = Promise.withResolvers<void>()
    lockTails.set(node, promise)
    onTestFinished(resolve) // clean-ups run in reverse order
    await before
  }
}
