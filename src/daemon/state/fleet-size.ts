/** How many agents the cluster has, to spread what all of them do at the same moment. */
export type FleetSize = {
  /** At least 1: as the census has counted last, and as the settings estimate before. */
  agents(): number
  /** A Lease of the census said so. */
  observe(agents: number): void
}

export function createFleetSize(estimatedNodeCount: number): FleetSize {
  let agents = Math.max(1, estimatedNodeCount)
  return {
    agents: () => agents,
    observe(counted) {
      if (counted >= 1) agents = counted
    },
  }
}
