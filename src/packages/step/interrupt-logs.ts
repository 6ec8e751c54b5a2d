/**
 * Logs of interrupts, with the operator's names: `interrupts/<type>_<index>-<UTC time>.log` below the logs of the
 * package's version. Each command has a log, and is its first line. The agent does not run the command: it calls
 * systemd and logind over D-Bus. Their errors are in the `.log.err`.
 */
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { MergedInterrupt } from '../../schemas/journal.ts'
import { interruptTypeNames, logDir, type HostFolders, type PackageInstance } from '../layout.ts'
import { claimLogFiles, pruneLogs } from './log-files.ts'

type Command = { readonly log: string; readonly line: string; readonly service?: string }

function commandsOf({ type, services = [], alsoRestartAllServices }: MergedInterrupt): Command[] {
  const logOf = (kind: typeof type, index: number): string => `interrupts/${interruptTypeNames[kind]}_${index}`
  const readSettings = { log: logOf('restartAllServices', 0), line: 'systemctl restart systemd-sysctl.service' }
  switch (type) {
    case 'noop':
      return []
    case 'reboot':
      return [{ log: logOf(type, 0), line: 'reboot' }]
    case 'restartAllServices':
      return [readSettings]
    case 'service': {
      const restarts = services.map((service, index) => {
        return { log: logOf(type, index + 1), line: `systemctl restart ${service}`, service }
      })
      const reload = { log: logOf(type, 0), line: 'systemctl daemon-reload' }
      return [reload, ...(alsoRestartAllServices ? [readSettings] : []), ...restarts]
    }
  }
}

/** `failureOf`: why a command failed, by the service that it restarts; undefined if it succeeded. */
export async function writeInterruptLogs(
  host: HostRoot,
  folders: HostFolders,
  { skyhook, name, version }: Pick<PackageInstance, 'skyhook' | 'name' | 'version'>,
  interrupt: MergedInterrupt,
  nowMs: number,
  failureOf: (service: string | undefined) => string | undefined,
): Promise<void> {
  const dir = `${logDir(folders, skyhook)}/${name}/${version}`
  for (const { log, line, service } of commandsOf(interrupt)) {
    const files = await claimLogFiles(host, dir, log, nowMs, { skyhook, package: name })
    await host.writeFile(files.stdout, `${line}\n`, 0o644)
    const failure = failureOf(service)
    if (failure !== undefined) await host.writeFile(files.stderr, `${failure}\n`, 0o644)
    await pruneLogs(host, dir, log)
  }
}
