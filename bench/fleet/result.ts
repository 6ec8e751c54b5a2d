/** What a measurement of a fleet found; docs of the fields are in bench/README.md. */
export type FleetResult = {
  readonly name: string
  readonly probeMs: number
  readonly startSeconds: number
  readonly aloneSeconds: number
  readonly rollout: RolloutResult
  readonly idle?: IdleResult
  readonly restart?: RestartResult
}

export type RolloutResult = {
  readonly seconds: {
    readonly makespan: number
    readonly ideal: number
    readonly firstNode: number
    readonly medianNode: number
    readonly status: number
  }
  readonly requestsPerNode: number
  readonly requestsByVerb: Readonly<Record<string, number>>
  readonly conflicts: number
  readonly tooManyRequests: number
  readonly watchEventsPerNode: number
  readonly watchKiBPerNode: number
  readonly etcdKiBPerNode: number
  readonly serverCpuSeconds: number
  readonly etcdCpuSeconds: number
  readonly agentCpuMsPerNode: number
  readonly serverRssMiB: number
  readonly agentRssMiB: number
  /** The share of the processors in use, by whatever ran on the machine. */
  readonly machineBusy: number
  readonly budget?: {
    readonly limit: number
    readonly mostSlots: number
    readonly mostHostsOut: number
    readonly violations: number
  }
  readonly handOverMs?: { readonly median: number; readonly worst: number }
  readonly longestSilentMs: number
  readonly warnings: Readonly<Record<string, number>>
}

export type IdleResult = {
  readonly seconds: number
  readonly requestsPerSecond: number
  readonly watchRenewalsPerSecond: number
  readonly serverCpuPercent: number
  readonly etcdCpuPercent: number
  readonly etcdBytesPerSecond: number
}

export type RestartResult = {
  readonly seconds: number
  readonly requestsPerNode: number
  readonly requestsByVerb: Readonly<Record<string, number>>
  readonly tooManyRequests: number
  readonly serverCpuSeconds: number
  readonly warnings: Readonly<Record<string, number>>
}
