import type { KubeTransport } from '../../kube/transport.ts'

/** A connection to the API server of the kubeconfig and the connection flags. */
export type Connection = {
  readonly transport: KubeTransport
  /** The context of the kubeconfig, for people; absent without a kubeconfig. */
  readonly contextName: string | undefined
  /** For people: `https://host:port`, with the path if it has one. */
  readonly server: string
  /** The value of `-n`. */
  readonly namespace: string | undefined
  /**
   * The namespace of the agents: `-n`, or by default the namespace of their DaemonSet, with one request to the API
   * server. Throws a `CommandError` without `-n` if there is no DaemonSet, or more than one.
   */
  readonly agentNamespace: () => Promise<string>
}
