/** `skyhookd validate PATH`: whether agents of this version would load a package. */
import { createLocalRoot } from '../host/fs/host-root.ts'
import { examinePath } from '../packages/validate/examine.ts'
import { findingFormats, formatFindings, hasErrors } from '../schemas/finding.ts'
import type { Random } from '../schemas/clock.ts'

const usage = `usage: skyhookd validate PATH [-o text|json|github]

PATH is a package: a folder with config.json, or an archive with its image. Exit code 0: valid, perhaps with warnings;
1: invalid; 2: wrong usage; 3: not found. Skyhooks are validated by "kubectl skyhook validate".
`

export type ValidateSurroundings = {
  readonly random: Random
  /** PATH is relative to this folder. */
  readonly workingDirectory: string
  readonly temporaryFolder: string
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
}

/** Writes the report and returns the exit code. Rejects on a disk error. */
export async function runValidate(parameters: readonly string[], around: ValidateSurroundings): Promise<number> {
  const [path, option, word = 'text', ...more] = parameters
  const format = findingFormats.find((one) => one === word)
  const hasOption = option === '-o' || option === '--output'
  if (path === undefined || path.startsWith('-') || format === undefined || more.length > 0 || (option && !hasOption)) {
    around.stderr(usage)
    return 2
  }
  const absolute = path.startsWith('/') ? path : `${around.workingDirectory}/${path}`
  const ports = { root: createLocalRoot(around.random), temporaryFolder: around.temporaryFolder }
  const examination = await examinePath(ports, absolute, path)
  switch (examination.outcome) {
    case 'not-found':
      around.stderr(`${path}: no such file or folder; is it mounted into the container?\n`)
      return 3
    case 'not-a-package':
      around.stderr(`${path}: neither a package folder nor an archive with its image\n${usage}`)
      return 2
    case 'examined':
      around.stdout(formatFindings(examination.examined, format))
      return hasErrors(examination.examined) ? 1 : 0
  }
}
