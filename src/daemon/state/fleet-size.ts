/** How many agents the cluster has, to spread work that all of them would do at the same time. */
export type FleetSize = {
  /** At least 1. The last count of the census, or the estimate of the settings before the first count. */
  agents(): number
  /** A Lease of the census has this count. */
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
