/** The cluster under chaos: two Skyhooks for all nodes, pods with disruption budgets, and a recorded service. */
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { conditionOf, type SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { publishedState, type Scripts } from '../kit/cluster/skyhooks.ts'
import { createWorkloads } from '../kit/cluster/workloads.ts'
import { hostOf } from '../kit/cluster/host.ts'
import type { Arena } from './arena.ts'
import { namespace, protectedLabels } from './protected-pods.ts'
import { stepsPath } from '../kit/recorded/step-lines.ts'
import { scriptsOf, serviceUnit } from './steps.ts'

export const skyhookNames = ['reboots', 'services'] as const
export type SkyhookName = (typeof skyhookNames)[number]

export const nodeLabelOf = (skyhook: string): string => `chaos.example.com/${skyhook}`
/** When everything heals. */
export const finalBudget = 3
const replicas = 5

/** `round` tells the runs of a script apart: every edit of packages takes another one. */
export function packageOf(
  registry: string,
  name: string,
  skyhook: SkyhookName,
  { version, round, ...more }: { version: string; round: number } & Partial<PackageSpec>,
): PackageSpec {
  const scripts = scriptsOf(skyhook, name, version, round)
  const configMap = Object.fromEntries(Object.entries(scripts as Scripts).map(([mode, text]) => [`${mode}.sh`, text]))
  return { version, image: `${registry}/skyhook-packages/shellscript`, configMap, ...more }
}

export const interrupts = {
  reboot: { type: 'reboot' },
  service: { type: 'service', services: [serviceUnit] },
} as const

function specOf(registry: string, skyhook: SkyhookName): SkyhookSpec {
  const first = { version: '1.1.0', round: 0 }
  const common = {
    nodeSelectors: { matchLabels: { [nodeLabelOf(skyhook)]: 'true' } },
    podNonInterruptLabels: { matchLabels: protectedLabels },
    interruptionBudget: { count: 2 },
  }
  switch (skyhook) {
    case 'reboots':
      return {
        ...common,
        priority: 100,
        packages: {
          kernel: packageOf(registry, 'kernel', skyhook, {
            ...first,
            interrupt: interrupts.reboot,
            configInterrupts: { 'config.sh': interrupts.reboot },
          }),
          tools: packageOf(registry, 'tools', skyhook, first),
        },
      }
    case 'services':
      return {
        ...common,
        priority: 200,
        packages: {
          web: packageOf(registry, 'web', skyhook, { ...first, interrupt: interrupts.service }),
          settings: packageOf(registry, 'settings', skyhook, {
            ...first,
            configInterrupts: { 'config.sh': interrupts.service },
          }),
        },
      }
  }
}

/** Hosts, pods and Skyhooks; the rollouts begin. */
export async function setUpScene(arena: Arena): Promise<void> {
  const { api, box, history, nodes, registry } = arena
  await Promise.all(
    nodes.map(async (node) => {
      const host = hostOf(box, node)
      const line = `echo "$$(date +%%s.%%N) - service - started - begins" >>${stepsPath}`
      await host.write(
        `/etc/systemd/system/${serviceUnit}.service`,
        `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c '${line}'\n`,
      )
      // a boot takes a second less without it
      await host.exec('sh', '-c', 'systemctl mask --now tuned; systemctl daemon-reload')
    }),
  )
  const workloads = await createWorkloads({ api, history }, namespace)
  await workloads.deploy('web', replicas)
  await workloads.budget('web', 'web', replicas - 1)
  for (const node of nodes) await labelNode(arena, node)
  for (const name of skyhookNames)
    await api.json('POST', paths.skyhooks, {
      body: {
        apiVersion: 'skyhook.nvidia.com/v1alpha1',
        kind: 'Skyhook',
        metadata: { name },
        spec: specOf(registry, name),
      },
    })
}

/** All Skyhooks select the node. */
export async function labelNode({ api }: Arena, node: string): Promise<void> {
  const labels = Object.fromEntries(skyhookNames.map((name) => [nodeLabelOf(name), 'true']))
  await patch<KubernetesNode>(api, `${paths.nodes}/${node}`, { metadata: { labels } })
}

/** Nodes that do not show the Skyhook's current packages as complete, with what they show. */
export function incomplete({ nodes, skyhooks }: View, name: string, expected: readonly string[]): string[] {
  const skyhook: Skyhook | undefined = skyhooks.get(name)
  if (!skyhook) return [`no Skyhook ${name}`]
  const hash = appliedHash(skyhook.spec)
  return expected.flatMap((node) => {
    const { status, companion, reason } = publishedState(nodes.get(node), name)
    return status === 'complete' && companion?.applied === hash
      ? []
      : [`${node} is ${status} for ${name}${reason ? ` (${reason.reason}: ${reason.message})` : ''}`]
  })
}

/** Its status says so for its current generation. */
export function isReadyNow(skyhook: Skyhook): boolean {
  const ready = conditionOf((skyhook.status ?? {}) as SkyhookStatus, 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === skyhook.metadata.generation
}
