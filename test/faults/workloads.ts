/** What a node does while faults hit it. Short, so that each failpoint is reached soon. */
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'

export const workloadNames = ['service', 'reboot', 'change'] as const
export type WorkloadName = (typeof workloadNames)[number]

/** A journal package at one of its versions. */
export type Pack = (version: string, more?: Partial<PackageSpec>) => PackageSpec

export type Workload = {
  readonly what: string
  /** What the node has completed before the part under test; absent: nothing. */
  readonly before?: (pack: Pack, service: string) => SkyhookSpec
  /** The spec under test. */
  readonly spec: (pack: Pack, service: string) => SkyhookSpec
  /** Packages of `before` that the spec under test removes: a merge patch would keep them. */
  readonly removed?: readonly string[]
  /** A pod runs on the node and must be drained. */
  readonly hasPod: boolean
  /** How often the node reboots without a fault. */
  readonly boots: number
}

/** `service` is a service of the host that writes to the journal each time it starts. */
export const workloads: Readonly<Record<WorkloadName, Workload>> = {
  service: {
    what: 'a drain, two packages of which the second depends on the first, a service restart',
    spec: (pack, service) => ({
      packages: {
        driver: pack('1.2.3', { interrupt: { type: 'service', services: [service] }, configMap: { colour: 'blue' } }),
        tools: pack('1.2', { dependsOn: { driver: '1.2.3' } }),
      },
    }),
    hasPod: true,
    boots: 0,
  },
  reboot: {
    what: 'a package that reboots the host',
    spec: (pack) => ({ packages: { kernel: pack('2.0.0', { interrupt: { type: 'reboot' } }) } }),
    hasPod: false,
    boots: 1,
  },
  change: {
    what: 'an upgrade, a configuration change that restarts a service, and a removal, all at once',
    before: (pack, service) => ({
      packages: {
        driver: pack('1.2.3'),
        tools: pack('1.2', {
          configMap: { colour: 'blue' },
          configInterrupts: { colour: { type: 'service', services: [service] } },
        }),
        old: pack('3.2.1'),
      },
    }),
    spec: (pack, service) => ({
      packages: {
        driver: pack('2.0.0'),
        tools: pack('1.2', {
          configMap: { colour: 'red' },
          configInterrupts: { colour: { type: 'service', services: [service] } },
        }),
      },
    }),
    removed: ['old'],
    hasPod: false,
    boots: 0,
  },
}
