import { createKubeTransport } from '../../kube/transport.ts'
import { version } from '../../schemas/version.ts'
import type { Connect } from '../framework/run.ts'
import { findAgentNamespace } from './agent-namespace.ts'
import { resolveAccess } from './kubeconfig.ts'
import { createLibraryCredentials } from './library-credentials.ts'

/** Connects to the API server of the kubeconfig, with kubectl's flags. Sends nothing before the first request. */
export const openConnection: Connect = async (flags, machine) => {
  const access = await resolveAccess(flags, machine)
  const transport = createKubeTransport({
    credentials: createLibraryCredentials(access, machine),
    program: 'kubectl-skyhook',
    version,
    clock: machine.clock,
    ...(flags.requestTimeout ? { defaultTimeoutMs: flags.requestTimeout } : {}),
    ...(flags.verbose && {
      onRequest: ({ verb, path, code, durationMs }) =>
        machine.stderr.write(`${verb} ${path} ${code || 'no answer'} in ${Math.round(durationMs)} ms\n`),
    }),
  })
  let namespace: Promise<string> | undefined
  return {
    transport,
    namespace: flags.namespace,
    contextName: access.contextName,
    server: access.cluster.server,
    agentNamespace: () =>
      (namespace ??=
        flags.namespace === undefined
          ? findAgentNamespace(transport, machine.signal)
          : Promise.resolve(flags.namespace)),
  }
}
