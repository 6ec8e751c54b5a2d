/** Tests of one file that run at the same time, each with its own nodes. */
import { type Cluster, type NodeName, uniqueName } from './cluster.ts'
import { createWorkloads, type Workloads } from './workloads.ts'

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

/** Locks the nodes, and returns the name of a Skyhook for them, which is removed when the test is finished. */
export async function claimNodes(
  cluster: Cluster,
  onTestFinished: OnTestFinished,
  stem: string,
  ...nodes: readonly NodeName[]
): Promise<string> {
  await lockNodes(onTestFinished, ...nodes)
  const name = uniqueName(stem)
  onTestFinished(async () => await cluster.remove(name))
  return name
}

/** The same with a namespace of the Skyhook's name, whose pods are removed after it. */
export async function claimWithPods(
  cluster: Cluster,
  onTestFinished: OnTestFinished,
  stem: string,
  ...nodes: readonly NodeName[]
): Promise<{ readonly name: string; readonly shop: Workloads }> {
  await lockNodes(onTestFinished, ...nodes)
  const name = uniqueName(stem)
  const shop = await createWorkloads(cluster, name)
  onTestFinished(async () => {
    await cluster.remove(name)
    await shop.remove()
  })
  return { name, shop }
}
