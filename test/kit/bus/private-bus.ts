import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * The default policy of a system bus: anybody may send any signal to anybody. Root may own the names of systemd and
 * logind, and they may be called.
 */
const configuration = (socketPath: string): string => `<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path=${socketPath}</listen>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.systemd1"/>
  </policy>
  <policy user="${process.getuid?.() ?? 0}">
    <allow own="org.freedesktop.systemd1"/>
    <allow own="org.freedesktop.login1"/>
  </policy>
</busconfig>
`

/** A real bus of its own, with the policy of a system bus. */
export async function startPrivateBus() {
  const folder = mkdtempSync(join(tmpdir(), 'private-bus-'))
  chmodSync(folder, 0o755) // other users connect, too
  const socketPath = join(folder, 'bus')
  const config = join(folder, 'bus.conf')
  writeFileSync(config, configuration(socketPath))
  const daemon = spawn('dbus-daemon', [`--config-file=${config}`, '--nofork', '--print-address'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await new Promise((resolve, reject) => {
    daemon.stdout.once('data', resolve) // it listens
    daemon.once('exit', (code) => reject(new Error(`dbus-daemon ended with ${code}`)))
  })
  const strangers = new Set<ChildProcess>()
  return {
    socketPath,
    address: `unix:path=${socketPath}`,
    /** Runs a program as another user, where this one may; resolves when it ends. */
    async runAsStranger(program: string, args: readonly string[]): Promise<void> {
      const command = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
      const [file = program, ...rest] = [...command, program, ...args]
      const stranger = spawn(file, rest, { stdio: ['ignore', 'ignore', 'inherit'], cwd: '/' })
      strangers.add(stranger)
      await new Promise((resolve) => stranger.once('close', resolve))
      strangers.delete(stranger)
    },
    async [Symbol.asyncDispose]() {
      for (const one of [...strangers, daemon]) {
        const ended = new Promise((resolve) => one.once('close', resolve))
        one.kill('SIGKILL')
        await ended
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
