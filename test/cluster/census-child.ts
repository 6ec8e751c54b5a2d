/** The census as the agent starts it, but with the credentials of a test: `{server, ca, token}` in the environment. */
import { staticCredentials } from '../kit/tool/static-credentials.ts'
import { runCensusProcess } from '../../src/daemon/census/process.ts'

const { server, ca, token } = JSON.parse(process.env['CENSUS_CREDENTIALS'] ?? '{}') as {
  server: string
  ca?: string
  token: string
}
const credentials = staticCredentials({ server, token, ...(ca !== undefined && { ca }) })

runCensusProcess(process, credentials).then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    process.exit(70)
  },
)
