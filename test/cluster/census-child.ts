/**
 * The census as the agent would start it, but with the credentials of a test: `{server, ca, token}` in the environment.
 */
import { staticCredentials } from '../../src/kube/credentials.ts'
import { runCensus } from '../../src/census/main.ts'

const { server, ca, token } = JSON.parse(process.env['CENSUS_CREDENTIALS'] ?? '{}') as {
  server: string
  ca?: string
  token: string
}
const credentials = staticCredentials({ server, token, ...(ca !== undefined && { ca }) })

runCensus({ stdin: process.stdin, stdout: process.stdout, credentials }).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    process.exit(70)
  },
)
