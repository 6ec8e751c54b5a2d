/** What a node lives through while things go wrong. Short, so that each of its crash points is soon reached. */
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'

export const workloadNames = ['service', 'reboot', 'change'] as const
export type WorkloadName = (typeof workloadNames)[number]

/** A journal package at one of its versions. */
export type Pack = (version: string, more?: Partial<PackageSpec>) => PackageSpec

export type Workload = {
  readonly what: string
  /** What the node has finished before anything goes wrong; absent: nothing. */
  readonly before?: (pack: Pack, service: string) => SkyhookSpec
  /** What it is told then. */
  readonly spec: (pack: Pack, service: string) => SkyhookSpec
  /** Packages of `before` that must be taken out of the spec: a merge patch would keep them. */
  readonly removed?: readonly string[]
  /** A pod stands on the node and has to be drained. */
  readonly hasPod: boolean
  /** How often the node reboots when nothing goes wrong. */
  readonly boots: number
}

/** `service` is a service of the host that writes into the journal each time it is started. */
export const workloads: Readonly<Record<WorkloadName, Workload>> = {
  service: {
    what: 'drain, two packages of which the second needs the first, a service restarted',
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
    what: 'at once: an upgrade, a changed configuration that restarts a service, a removal',
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
