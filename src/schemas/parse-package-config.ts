import { validatePackageConfig } from './generated/package-config-validator.ts'
import { messageOf } from './json.ts'
import { ruleProblems, ruleWarnings } from './package-config-rules.ts'
import {
  checkOf,
  stagesWithSteps,
  type Mode,
  type PackageConfig,
  type PackageConfigFile,
  type Step,
  type StepFile,
} from './package-config.ts'
import { schemaProblems, type Problem } from './validation.ts'

export type ParsedPackageConfig =
  | { readonly outcome: 'valid'; readonly config: PackageConfig; readonly warnings: readonly Problem[] }
  | { readonly outcome: 'invalid'; readonly problems: readonly Problem[] }

/**
 * Reads the text of a config.json: syntax, version, schema, then the rules between its parts. Reports every problem
 * found, each with its JSON pointer. Files need not exist: see packages/step/load-package.ts. Never throws.
 */
export function parsePackageConfig(text: string): ParsedPackageConfig {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    return invalid([
      {
        pointer: '',
        message: `is not JSON: ${messageOf(error)}`,
        rule: 'json-syntax',
        remedy: 'write JSON: names in double quotes, no comments, no comma after the last entry',
      },
    ])
  }

  const unsupportedVersion = newerVersion(document)
  if (unsupportedVersion) return invalid([unsupportedVersion])
  if (!validatePackageConfig(document)) return invalid(schemaProblems(validatePackageConfig.errors ?? []))

  const file = document as PackageConfigFile
  const problems = ruleProblems(file)
  if (problems.length > 0) return invalid(problems)
  return { outcome: 'valid', config: configOf(file), warnings: ruleWarnings(file) }
}

const invalid = (problems: readonly Problem[]): ParsedPackageConfig => ({ outcome: 'invalid', problems })

/** A newer version may give any field another meaning: one clear sentence instead of a list of guesses. */
function newerVersion(document: unknown): Problem | undefined {
  if (typeof document !== 'object' || document === null || !('schema_version' in document)) return undefined
  const value = document.schema_version
  if (typeof value !== 'string' || !/^v([2-9]|[1-9][0-9]+)$/.test(value)) return undefined
  return {
    pointer: '/schema_version',
    message: 'is newer than v1, the newest that this agent reads: upgrade skyhookd or build the package for v1',
    value,
    rule: 'schema-version',
    remedy: 'upgrade skyhookd or build the package for v1',
  }
}

function configOf(file: PackageConfigFile): PackageConfig {
  const modes: Partial<Record<Mode, readonly Step[]>> = {}
  for (const stage of stagesWithSteps) {
    for (const mode of [stage, checkOf(stage)] as const) {
      const steps = file.modes[mode]
      if (steps) modes[mode] = steps.map(stepOf)
    }
  }
  return {
    packageName: file.package_name,
    packageVersion: file.package_version,
    expectedConfigFiles: file.expected_config_files,
    modes,
  }
}

function stepOf(step: StepFile): Step {
  return {
    name: step.name,
    path: step.path,
    arguments: step.arguments,
    returncodes: step.returncodes,
    onHost: step.on_host,
    env: step.env ?? {},
    idempotence: step.idempotence ? 'step' : 'agent',
    upgradeStep: step.upgrade_step,
  }
}
