import type { Sandbox } from '../../sandbox/sandbox.ts'

/** The last log lines of every agent. Never throws: it serves failure reports. */
export async function agentLogs(sandbox: Sandbox): Promise<string> {
  const selector = ['-l', 'app.kubernetes.io/name=skyhookd']
  try {
    return await sandbox.kubectl([
      '-n',
      'skyhook',
      'logs',
      ...selector,
      '--prefix',
      '--tail=60',
      '--max-log-requests=20',
    ])
  } catch (error) {
    return String(error)
  }
}
