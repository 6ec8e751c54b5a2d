import { parseTaint, type Settings } from '../../../src/daemon/settings/settings.ts'

/** Settings of the agent of a Node, as the chart gives them. */
export function settingsOf(nodeName: string, hostRoot: string): Settings {
  return {
    nodeName,
    podName: `agent-of-${nodeName}`,
    namespace: 'skyhook',
    fieldValues: { nodeName, namespace: 'skyhook', hostIp: '127.0.0.1' },
    hostRoot,
    copyDirRoot: '/var/lib/skyhook',
    agentLogRoot: '/var/log/skyhook',
    stepLogLimitBytes: 1 << 24,
    runtimeRequiredTaint: parseTaint('skyhook.nvidia.com=runtime-required:NoSchedule'),
    logLevel: 'debug',
    metrics: { enabled: true, port: 0 },
    health: { port: 0 },
    registries: [],
    imagePullSecrets: [],
    proxy: {},
    drain: { skipNamespaces: ['kube-system'], allowDelete: false },
    reapplyOnReboot: false,
    ignoreNodeWright: false,
    defaultBudget: {},
    estimatedNodeCount: 2,
  }
}
