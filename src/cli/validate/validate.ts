import { tmpdir } from 'node:os'
import { withSharedFiles } from '../../packages/validate/examine.ts'
import { formatFindings, hasErrors } from '../../schemas/finding.ts'
import type { Context } from '../framework/command.ts'
import { type ExitCode, exitCodes } from '../framework/command-error.ts'
import type { RegistryFlags } from '../registry/flags.ts'
import { openRegistry } from '../registry/settings.ts'
import { examineTarget } from './target.ts'
import { checkedTogether, type ExaminedTarget } from './together.ts'

/** Examines every target and writes one report. @throws CommandError where nothing is there */
export async function validateTargets(
  context: Context,
  { targets }: { readonly targets: readonly string[] },
  flags: RegistryFlags,
): Promise<ExitCode> {
  const ports = {
    random: context.random,
    signal: context.signal,
    temporaryFolder: tmpdir(),
    readText: (path: string) => context.readText(path),
    openRegistry: (host: string) => openRegistry(context, flags, host),
  }
  const examined: ExaminedTarget[] = []
  for (const target of targets) examined.push(...(await examineTarget(ports, target)))
  const { format, stdout } = context
  const report = withSharedFiles(checkedTogether(examined))
  if (format === 'json') stdout.document(formatFindings(report, format))
  else stdout.write(formatFindings(report, format === 'github' ? format : 'text'))
  return hasErrors(report) ? exitCodes.failed : exitCodes.ok
}
