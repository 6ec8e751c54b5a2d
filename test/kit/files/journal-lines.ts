/** The journal that test/fixtures/packages/journal keeps on a host, read back. */
import type { Host } from '../cluster/host.ts'

export const journalFile = '/var/log/skyhook-journal'

/**
 * One step that started (or got SIGTERM: argument SIGTERM), or one start of a recorded service (package = service,
 * mode = `started`).
 */
export type Line = {
  readonly atMs: number
  readonly package: string
  readonly version: string
  readonly mode: string
  readonly step: string
  readonly args: string
}

/** What a Skyhook did on a host, in the order in which it happened. */
export async function linesOf(host: Host, skyhook: string): Promise<Line[]> {
  return parseLines(await host.lines(journalFile), skyhook)
}

/** Lines of one Skyhook among those of a journal. */
export function parseLines(lines: readonly string[], skyhook: string): Line[] {
  return lines
    .map((line) => line.split(' '))
    .filter(([, of]) => of === skyhook)
    .map(([at = '', , name = '', version = '', mode = '', step = '', ...args]) => ({
      atMs: Number.parseFloat(at) * 1000,
      package: name,
      version,
      mode,
      step,
      args: args.join(' '),
    }))
}

/** `dexter apply`, `dexter apply-check`, …: in order, without versions. */
export const summarize = (lines: readonly Line[]): string[] => lines.map(({ package: name, mode }) => `${name} ${mode}`)

/** Steps of one package. */
export const ofPackage = (lines: readonly Line[], name: string): Line[] => lines.filter((line) => line.package === name)

/** Modes of one package, in order. */
export const modesOf = (lines: readonly Line[], name: string): string[] =>
  ofPackage(lines, name).map(({ mode }) => mode)

/** The modes of stages, each with its check. */
export const withChecks = (...stages: readonly string[]): string[] =>
  stages.flatMap((stage) => [stage, `${stage}-check`])

/** When a package wrote its first line of a mode; throws if it wrote none. */
export function startTimeOf(lines: readonly Line[], name: string, mode: string): number {
  const found = ofPackage(lines, name).find((line) => line.mode === mode)
  if (!found) throw new Error(`${name} never ran ${mode}: ${summarize(lines).join(', ')}`)
  return found.atMs
}

/**
 * A service of the host that writes a line at each start, so that the same journal proves restarts by interrupts. Its
 * name is `<skyhook>-<name>`, so that Skyhooks do not collide.
 */
export async function recordService(host: Host, skyhook: string, name: string): Promise<string> {
  const unit = `${skyhook}-${name}`
  const start = `echo "$$(date +%%s.%%N) ${skyhook} ${name} - started ${unit}" >>${journalFile}`
  await host.write(
    `/etc/systemd/system/${unit}.service`,
    `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c '${start}'\n`,
  )
  await host.exec('systemctl', 'daemon-reload')
  return unit
}

/** Starts of recorded services, sorted by name. */
export const startsOf = (lines: readonly Line[]): string[] =>
  lines
    .filter(({ mode }) => mode === 'started')
    .map(({ package: name }) => name)
    .sort()
