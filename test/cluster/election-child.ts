/** One candidate as its own process: reports `elected` and `lost` with the time, and exits cleanly on SIGTERM. */
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { staticCredentials } from '../kit/tool/static-credentials.ts'
import { createKubeTransport } from '../../src/kube/transport.ts'
import { startElection } from '../../src/lease/election.ts'

const { namespace, identity, agents, ...credentials } = JSON.parse(process.env['CANDIDATE'] ?? '{}') as {
  namespace: string
  identity: string
  agents: number
  server: string
  ca: string
  cert: string
  key: string
}
const transport = createKubeTransport({
  credentials: staticCredentials(credentials),
  version: 'test',
  clock: systemClock,
})
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort(new Error('SIGTERM')))
const emit = (what: string, why = ''): void =>
  void process.stdout.write(`${JSON.stringify({ what, why, atMs: Date.now() })}\n`)

const election = startElection(
  { transport, namespace, clock: systemClock },
  {
    identity,
    random: systemRandom,
    agents: () => agents,
    published: () => ({ agents, countedAtMs: undefined }),
    onAgents: () => {},
    onElected: () => emit('elected'),
    onLost: (why) => emit('lost', why),
    signal: stopping.signal,
  },
)
emit('stands')
await election.ended
process.exit(0)
