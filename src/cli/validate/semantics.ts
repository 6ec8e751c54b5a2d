/** What is wrong with a Skyhook, or probably not meant, although every rule of the API server holds. Pure. */
import { ImageError } from '../../packages/oci/errors.ts'
import { packageReference, parseReference } from '../../packages/oci/reference.ts'
import { milliQuantity } from '../../packages/step/quantity.ts'
import { resourceProblem } from '../../packages/step/references.ts'
import type { Finding } from '../../schemas/finding.ts'
import { matchesGlob } from '../../schemas/selectors.ts'
import type { EnvVar, Interrupt, PackageSpec, SkyhookSpec } from '../../schemas/skyhook.ts'
import { pointerSegment } from '../../schemas/validation.ts'
import {
  dependencyProblems,
  type SpecProblem,
  serviceProblems,
  variableProblems,
} from '../../stages/package/spec-problems.ts'
import { splitRemedy } from './cel.ts'

/** Without its file, which the caller knows. */
export type SkyhookFinding = Omit<Finding, 'file' | 'line'>

/** @param spec one that fits the schema */
export function semanticFindings(spec: SkyhookSpec): SkyhookFinding[] {
  const packages = Object.entries(spec.packages ?? {})
  return [
    ...dependencyFindings(spec),
    ...packages.flatMap(([name, one]) => packageFindings(one, `/spec/packages/${pointerSegment(name)}`)),
    ...budgetFindings(spec),
    ...withoutEffect(spec),
  ]
}

function dependencyFindings({ packages = {} }: SkyhookSpec): SkyhookFinding[] {
  return dependencyProblems(packages).map((text) => {
    const [place = '', ...rest] = text.split(': ')
    const [message, remedy] = splitRemedy(rest.join(': '))
    return error('dependency', `/spec/${place.replaceAll('.', '/')}`, message, remedy)
  })
}

function packageFindings(spec: PackageSpec, pointer: string): SkyhookFinding[] {
  const interrupts: [string, Interrupt][] = Object.entries(spec.configInterrupts ?? {}).map(([key, one]) => [
    `${pointer}/configInterrupts/${pointerSegment(key)}`,
    one,
  ])
  if (spec.interrupt !== undefined) interrupts.push([`${pointer}/interrupt`, spec.interrupt])
  return [
    ...imageFindings(spec, pointer),
    ...resourceFindings(spec, pointer),
    ...problemFindings('variable', variableProblems(spec), pointer),
    ...referenceFindings(spec, `${pointer}/env`),
    ...variableFindings(spec.env ?? [], `${pointer}/env`),
    ...problemFindings('service-name', serviceProblems(spec), pointer),
    ...interrupts.flatMap(([at, interrupt]) => interruptFindings(interrupt, at)),
    ...patternFindings(spec, pointer),
    ...lineEndFindings(spec, `${pointer}/configMap`),
  ]
}

function imageFindings({ image, version, containerSHA }: PackageSpec, pointer: string): SkyhookFinding[] {
  try {
    packageReference(image, version, containerSHA)
  } catch (failure) {
    if (!(failure instanceof ImageError)) throw failure
    const message = `cannot be pulled: ${failure.message}`
    return [error('image-reference', `${pointer}/image`, message, 'write [host[:port]/]repository', image)]
  }
  const { tag } = parseReference(image)
  if (tag === undefined || tag === version) return []
  const message = `has the tag ${tag}, which is ignored: version ${version} is pulled`
  return [warning('image-tag', `${pointer}/image`, message, 'remove the tag, or correct version', image)]
}

/** What agents say as well, in the same words. */
const problemFindings = (rule: string, problems: readonly SpecProblem[], pointer: string): SkyhookFinding[] =>
  problems.map(({ path, problem, remedy }) =>
    error(rule, [pointer, ...path.map((part) => pointerSegment(String(part)))].join('/'), problem, remedy),
  )

const resourceNames = ['cpuRequest', 'cpuLimit', 'memoryRequest', 'memoryLimit'] as const

/** The chart's admission policy has the same rules; a cluster without it has not. */
function resourceFindings({ resources }: PackageSpec, packagePointer: string): SkyhookFinding[] {
  if (resources === undefined) return []
  const pointer = `${packagePointer}/resources`
  const say = (message: string, remedy: string): SkyhookFinding[] => [error('resources', pointer, message, remedy)]
  const isNegative = resourceNames.some((name) => String(resources[name] ?? '').startsWith('-'))
  if (isNegative) return say('below zero; all four must be above zero', 'write quantities above zero')
  const amounts = resourceNames.map((name) => milliQuantity(resources[name] ?? 0))
  if (amounts.includes(undefined)) {
    const remedy = 'write numbers such as 500m, 2, 128Mi or 1Gi'
    return say(`no quantity; ${remedy}`, remedy)
  }
  const given = amounts.filter((amount) => amount !== 0n).length // zero stands for not given
  if (given !== 0 && given !== resourceNames.length) {
    const remedy = `give all of cpuRequest, cpuLimit, memoryRequest and memoryLimit, or none of them`
    return say(remedy, remedy)
  }
  const [cpuRequest = 0n, cpuLimit = 0n, memoryRequest = 0n, memoryLimit = 0n] = amounts
  if (cpuLimit >= cpuRequest && memoryLimit >= memoryRequest) return []
  const remedy = 'raise cpuLimit or memoryLimit, or lower the request'
  return say(`a limit is below its request; ${remedy}`, remedy)
}

/** In the words of agents, which know it before anything starts. */
const referenceFindings = ({ env = [], resources }: PackageSpec, pointer: string): SkyhookFinding[] =>
  env.flatMap(({ name, value = '', valueFrom }, index) => {
    const reference = value === '' ? valueFrom?.resourceFieldRef : undefined
    const problem = reference && resourceProblem(reference, resources)
    if (problem === undefined) return []
    const remedy = 'set it in resources of the package, or give the value as text'
    return [error('variable', `${pointer}/${index}/valueFrom/resourceFieldRef`, `${name} ${problem}`, remedy)]
  })

function variableFindings(env: readonly EnvVar[], pointer: string): SkyhookFinding[] {
  const findings: SkyhookFinding[] = []
  const known = new Set<string>()
  for (const [index, { name, value = '' }] of env.entries()) {
    const at = `${pointer}/${index}`
    if (known.has(name)) {
      const message = 'has the name of an earlier variable, whose value it replaces'
      findings.push(warning('variable-twice', `${at}/name`, message, 'remove one of the two', name))
    }
    for (const [, unknown] of value.matchAll(/\$(?:\$|\(([A-Za-z_][A-Za-z0-9_]*)\))/g)) {
      if (unknown === undefined || known.has(unknown)) continue
      const message = `refers to ${unknown}, which no earlier variable sets: the text stays as it is`
      const remedy = `set ${unknown} before ${name}, or write $$(${unknown}) where the text is meant`
      findings.push(warning('variable-reference', `${at}/value`, message, remedy, value))
    }
    known.add(name)
  }
  return findings
}

function interruptFindings({ type, services = [] }: Interrupt, pointer: string): SkyhookFinding[] {
  if (type === 'service' && services.length === 0) {
    const remedy = 'list the services, or choose another type'
    return [warning('interrupt-services', pointer, 'restarts no service, since services is empty', remedy)]
  }
  if (type === 'service' || services.length === 0) return []
  const remedy = 'remove services, or write type: service'
  return [warning('interrupt-services', `${pointer}/services`, `has no effect with type ${type}`, remedy, services)]
}

/** The resource definition cannot read patterns with classes or escapes. */
function patternFindings({ configInterrupts = {}, configMap = {} }: PackageSpec, pointer: string): SkyhookFinding[] {
  return Object.keys(configInterrupts).flatMap((pattern) => {
    if (Object.keys(configMap).some((key) => key === pattern || matchesGlob(pattern, key))) return []
    const at = `${pointer}/configInterrupts/${pointerSegment(pattern)}`
    const message = 'matches no key of configMap, so it never interrupts'
    return [warning('config-interrupt', at, message, 'write a key of configMap, or a pattern that matches one')]
  })
}

/** Files of `configMap` that are scripts, by name or by their first line. */
const lineEndFindings = ({ configMap = {} }: PackageSpec, pointer: string): SkyhookFinding[] =>
  Object.entries(configMap).flatMap(([key, text]) => {
    if (!text.includes('\r\n') || !(key.endsWith('.sh') || text.startsWith('#!'))) return []
    const message = 'has Windows line endings: its interpreter reads the carriage return as text'
    return [warning('line-ends', `${pointer}/${pointerSegment(key)}`, message, 'end lines with only a line feed')]
  })

function budgetFindings(spec: SkyhookSpec): SkyhookFinding[] {
  const { interruptionBudget: budget, deploymentPolicy = '', packages = {} } = spec
  const limit = budget?.percent ?? budget?.count ?? undefined
  if (limit === 0) {
    const message = 'is 0, so no node starts'
    return [warning('budget', '/spec/interruptionBudget', message, 'raise it when the rollout may start')]
  }
  const interrupts = Object.values(packages).some(
    (one) => one.interrupt !== undefined || Object.keys(one.configInterrupts ?? {}).length > 0,
  )
  if (limit !== undefined || deploymentPolicy !== '' || !interrupts) return []
  const message =
    'is missing: without a default of the chart, all selected nodes may be drained and interrupted at once'
  const remedy = 'set interruptionBudget.count or .percent, or name a deploymentPolicy'
  return [warning('budget', '/spec/interruptionBudget', message, remedy)]
}

function withoutEffect(spec: SkyhookSpec): SkyhookFinding[] {
  const findings: SkyhookFinding[] = []
  const say = (pointer: string, message: string, remedy: string): void =>
    void findings.push(warning('no-effect', pointer, message, remedy))
  const { drain, deploymentPolicy = '', deploymentPolicyOptions = {}, autoTaintNewNodes, runtimeRequired } = spec
  if (autoTaintNewNodes === true && runtimeRequired !== true)
    say('/spec/autoTaintNewNodes', 'has no effect without runtimeRequired', 'set runtimeRequired: true, or remove it')
  if (deploymentPolicy === '' && Object.keys(deploymentPolicyOptions).length > 0)
    say('/spec/deploymentPolicyOptions', 'has no effect without deploymentPolicy', 'name a policy, or remove it')
  const { onTimeout = 'wait', timeoutSeconds } = drain ?? {}
  if (onTimeout !== 'wait' && timeoutSeconds === undefined)
    say('/spec/drain/onTimeout', 'has no effect without timeoutSeconds', 'set drain.timeoutSeconds, or remove it')
  for (const [index, toleration] of (spec.additionalTolerations ?? []).entries()) {
    if (!('tolerationSeconds' in toleration)) continue
    const pointer = `/spec/additionalTolerations/${index}/tolerationSeconds`
    say(pointer, 'has no effect: taints do not evict Skyhooks', 'remove it')
  }
  for (const [name, one] of Object.entries(spec.packages ?? {})) {
    if (!('agentImageOverride' in one)) continue
    const pointer = `/spec/packages/${pointerSegment(name)}/agentImageOverride`
    say(pointer, 'has no effect: the agent of the node runs every package', 'remove it')
  }
  return findings
}

const error = (rule: string, pointer: string, message: string, remedy: string, value?: unknown): SkyhookFinding =>
  finding('error', rule, pointer, message, remedy, value)
const warning = (rule: string, pointer: string, message: string, remedy: string, value?: unknown): SkyhookFinding =>
  finding('warning', rule, pointer, message, remedy, value)

const finding = (
  severity: Finding['severity'],
  rule: string,
  pointer: string,
  message: string,
  remedy: string,
  value: unknown,
): SkyhookFinding => ({ severity, pointer, message, rule, remedy, ...(value !== undefined && { value }) })
