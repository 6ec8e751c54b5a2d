/** One candidate as a process of its own: says `elected` and `lost` with the time, ends in good order on SIGTERM. */
import { staticCredentials } from '../../src/kube/credentials.ts'
import { createTransport } from '../../src/kube/transport.ts'
import { startElection } from '../../src/lease/election.ts'

const { identity, candidates, ...credentials } = JSON.parse(process.env['CANDIDATE'] ?? '{}') as {
  identity: string
  candidates: number
  server: string
  ca: string
  cert: string
  key: string
}
const transport = createTransport({ credentials: staticCredentials(credentials), version: 'test' })
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort(new Error('SIGTERM')))
const say = (what: string, why = ''): void => void process.stdout.write(`${JSON.stringify({ what, why, atMs: Date.now() })}\n`)

const election = startElection(
  { transport, namespace: 'default' },
  {
    identity,
    candidates: () => candidates,
    onElected: () => say('elected'),
    onLost: (why) => say('lost', why),
    signal: stopping.signal,
  },
)
say('stands')
await election.ended
process.exit(0)
