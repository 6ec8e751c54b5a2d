/** A local web page of the rollouts, served by this process. */
import type { KubeTransport } from '../../kube/transport.ts'
import type { DashboardSource } from '../dashboard/page-data.ts'
import { readable } from '../fleet/fleet-view/readable.ts'
import { type Context, defineCommand } from '../base/framework/command.ts'
import { CommandError, usageError, exitCodes } from '../base/framework/command-error.ts'
import { isObject } from '../../schemas/json.ts'
import { version } from '../../schemas/version.ts'
import { known, type Known, unknown } from '../../stages/model/snapshot.ts'
import { fromFlag } from '../bundle/open.ts'

const maxPort = 65_535

export const dashboard = defineCommand({
  name: 'dashboard',
  summary: 'serve a local web page of the rollouts: nodes, slots over time, reasons, logs, the plan of an edit',
  description:
    'The page is on 127.0.0.1 of this machine and shows what you may read. Nothing runs in the cluster, and nothing ' +
    'is changed: actions are commands to copy. The link works once, in one browser. Ends with ctrl-C. With --from ' +
    'it shows a support archive as it was when it was made, and asks no cluster.',
  example: 'kubectl skyhook dashboard',
  otherExamples: ['kubectl skyhook dashboard --from support.tar.gz'],
  flags: {
    from: fromFlag,
    port: {
      type: 'integer',
      placeholder: 'PORT',
      default: 0,
      minimum: 0,
      summary: 'port on 127.0.0.1; 0: any that is free',
    },
  },
  exitCodes: {
    [exitCodes.ok]: 'ended by ctrl-C',
    [exitCodes.notFound]: 'no agents are installed',
    [exitCodes.interrupted]: 'interrupted by ctrl-C before the page was served',
  },
  async run(context, { flags: { from, port } }) {
    if (port > maxPort) throw usageError(`--port must be at most ${maxPort}, got ${port}`)
    const { random, signal, stdout, stderr } = context
    const source = from === undefined ? await openCluster(context) : await openArchive(context, from)
    const { startDashboardServer } = await import('../dashboard/server.ts')
    const serving = await startDashboardServer({ source, random, signal, port }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error
        throw new CommandError(
          exitCodes.failed,
          `cannot listen on 127.0.0.1:${port}: ${error.code}`,
          'leave out --port',
        )
      },
    )
    stdout.write(`${serving.url}\n`)
    stderr.write('open this link in a browser on this machine; it works once. ctrl-C ends the dashboard\n')
    try {
      return await serving.ended
    } catch (error) {
      // the usual end
      if (!signal.aborted) throw error
      return exitCodes.ok
    } finally {
      await serving.close()
    }
  },
})

async function openCluster(context: Context): Promise<DashboardSource> {
  const { clock, random, signal } = context
  const { openFleetSource } = await import('../dashboard/fleet-source.ts')
  const { transport, contextName, server, agentNamespace } = await context.connect()
  const [namespace, user] = await Promise.all([agentNamespace(), userOf(transport, signal)])
  const identity = { isLive: true, context: contextName, server, namespace, user, version } as const
  return await openFleetSource({ transport, clock, random, identity, signal })
}

async function openArchive({ clock, random, signal }: Context, file: string): Promise<DashboardSource> {
  const [{ openBundle }, { openFleetSource }] = await Promise.all([
    import('../bundle/open.ts'),
    import('../dashboard/fleet-source.ts'),
  ])
  const { index, namespace, ...bundle } = await openBundle(file, { clock, random })
  const madeBy = index.toolVersion
  const takenAtMs = bundle.clock.wallMs()
  const identity = { isLive: false, file, takenAtMs, madeBy, namespace, version } as const
  return await openFleetSource({ ...bundle, random, identity, signal })
}

/** The caller's name for the API server, which may differ from that in the kubeconfig. */
async function userOf(transport: KubeTransport, signal: AbortSignal): Promise<Known<string>> {
  const review = await readable(
    'SelfSubjectReviews',
    transport.json<unknown>('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      signal,
    }),
  )
  if (!review.known) return review
  const status = isObject(review.value) ? review.value['status'] : undefined
  const info = isObject(status) ? status['userInfo'] : undefined
  const name = isObject(info) ? info['username'] : undefined
  return typeof name === 'string' ? known(name) : unknown('the API server did not report who you are')
}
