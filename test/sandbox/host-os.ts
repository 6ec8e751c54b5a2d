/** What the hosts of sandboxes are made from (HOST_OS, see base.sh), for tests that ask for what not each of them has. */

const names = ['bullseye', 'bookworm', 'trixie', 'trixie-broker', 'bare', 'container'] as const
export type HostOs = (typeof names)[number]

export const hostOs: HostOs = readHostOs(process.env['HOST_OS'] ?? 'bookworm')

/** A bus daemon, logind, and what needs them, such as tuned. Without a bus systemd keeps no references to units. */
export const hasBus = hostOs !== 'bare' && hostOs !== 'container'
/** That of Debian 13, tuned 2.25, ignores scripts outside of its profile directories. */
export const tunedRunsScripts = !hostOs.startsWith('trixie')
/** The host is to the agent a machine of its own, and may be rebooted. */
export const canRebootOn = (os: HostOs): boolean => os !== 'container'

function readHostOs(text: string): HostOs {
  const known = names.find((name) => name === text)
  if (known === undefined) throw new Error(`HOST_OS=${text} is not one of ${names.join(', ')}`)
  return known
}
