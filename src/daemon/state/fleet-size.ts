/** How many agents the cluster has, to spread what all of them do at the same moment. */
export type FleetSize = {
  /** At least 1: as the census has counted last, and as the settings estimate before. */
  agents(): number
  /** The census has counted, not only the settings. */
  isCounted(): boolean
  /** A Lease of the census said so. */
  observe(agents: number): void
}

export function createFleetSize(estimatedNodeCount: number): FleetSize {
  let agents = Math.max(1, estimatedNodeCount)
  let isCounted = false
  return {
    agents: () => agents,
    isCounted: () => isCounted,
    observe(counted) {
      if (counted < 1) return
      agents = counted
      isCounted = true
    },
  }
}
