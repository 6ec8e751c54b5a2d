import type { KubeTransport } from '../../kube/transport.ts'

/** An open way to the API server that the kubeconfig and the connection flags name. */
export type Connection = {
  readonly transport: KubeTransport
  /** Of the kubeconfig, for people; absent without a kubeconfig. */
  readonly contextName: string | undefined
  /** For people: `https://host:port`, with the path if it has one. */
  readonly server: string
  /** What `-n` says. */
  readonly namespace: string | undefined
  /**
   * Where the agents live: `-n`, else the namespace of their DaemonSet. Asks the API server once. Throws a
   * `CommandError` if it is not given and no DaemonSet, or more than one, is found.
   */
  readonly agentNamespace: () => Promise<string>
}
