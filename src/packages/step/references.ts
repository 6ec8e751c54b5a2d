/**
 * Resolves a package's `env` of the Skyhook as the kubelet does for a pod: in order, with `$(NAME)` and `$$` expanded
 * in literal values, and with references read. Values are stored only in the environment file of a running step. Secret
 * values are listed for masking.
 */
import {
  dependsOnSystemd,
  environmentBytes,
  environmentNameProblem,
  environmentSizeProblem,
  environmentTextProblem,
  expandVariables,
  systemdValueProblem,
} from '../../schemas/environment-variable.ts'
import { perText } from '../../schemas/per-object.ts'
import type { EnvVar, EnvVarSource, PackageResources } from '../../schemas/skyhook.ts'
import { countIn } from './quantity.ts'

/** Reads objects of the agent's namespace. Undefined: the object does not exist. Rejects if that is unknown. */
export type ReferencePort = {
  /** `data` as the API has it: base64. */
  secret(name: string): Promise<Readonly<Record<string, string>> | undefined>
  configMap(name: string): Promise<Readonly<Record<string, string>> | undefined>
}

/** The fields that fieldRef supports. The agents share the host's network, so both addresses are the node's. */
export type FieldValues = { readonly nodeName: string; readonly hostIp: string; readonly namespace: string }

export type Variable = { readonly name: string; readonly value: string }

export type ResolvedEnv =
  | { readonly outcome: 'resolved'; readonly variables: readonly Variable[]; readonly secrets: readonly string[] }
  /** A sentence for each missing object or key with variable, object and key. The object may still be created. */
  | { readonly outcome: 'missing'; readonly references: readonly string[] }
  /** Sentences that name the variable: the user must edit the Skyhook. */
  | { readonly outcome: 'invalid'; readonly problems: readonly string[] }

export type ResolveInput = {
  readonly env: readonly EnvVar[]
  readonly resources?: PackageResources | undefined
  readonly fields: FieldValues
  readonly port: ReferencePort
  /**
   * The host's version, such as 252. Called only for values that some versions do not support. Rejects if it is
   * unknown.
   */
  readonly systemdVersion: () => Promise<number>
}

/** One sentence with the remedy. */
export const formatMissing = (references: readonly string[]): string =>
  `${references.join('; ')}: create what is missing, or mark the reference optional in the package's env`

type VariableRead =
  | { readonly read: 'value'; readonly value: string; readonly secret?: boolean }
  | { readonly read: 'omitted' } // optional and missing
  | { readonly read: 'missing'; readonly reference: string }
  | { readonly read: 'invalid'; readonly why: string }

/** Each object is read once. Problems of the Skyhook itself come before missing objects. */
export async function resolveReferences(input: ResolveInput): Promise<ResolvedEnv> {
  const { env, resources, fields, port, systemdVersion } = input
  const cachedPort = cacheReads(port)
  const values = new Map<string, string>()
  const secrets = new Set<string>()
  const missing: string[] = []
  const problems: string[] = []

  for (const variable of env) {
    const nameProblem = environmentNameProblem(variable.name)
    if (nameProblem) {
      problems.push(`env ${JSON.stringify(variable.name)} ${nameProblem}`)
      continue
    }
    const read = await readVariable(variable, values, { resources, fields, port: cachedPort })
    if (read.read === 'missing') missing.push(`env ${variable.name} needs ${read.reference}`)
    if (read.read === 'invalid') problems.push(`env ${variable.name} ${read.why}`)
    if (read.read !== 'value') continue
    const why =
      environmentTextProblem(read.value, variable.name) ??
      (dependsOnSystemd(read.value) ? systemdValueProblem(read.value, await systemdVersion()) : undefined)
    if (why) problems.push(`env ${variable.name} ${why}`)
    values.set(variable.name, read.value)
    if (read.secret === true) secrets.add(read.value)
  }

  const bytes = [...values].reduce((sum, [name, value]) => sum + environmentBytes(name, value), 0)
  const sizeProblem = environmentSizeProblem(bytes)
  if (sizeProblem !== undefined) problems.push(`env ${sizeProblem}`)
  if (problems.length > 0) return { outcome: 'invalid', problems }
  if (missing.length > 0) return { outcome: 'missing', references: [...new Set(missing)] }
  return {
    outcome: 'resolved',
    variables: [...values].map(([name, value]) => ({ name, value })),
    secrets: [...secrets],
  }
}

type ReadContext = Omit<ResolveInput, 'env' | 'systemdVersion'>

async function readVariable(
  variable: EnvVar,
  values: ReadonlyMap<string, string>,
  context: ReadContext,
): Promise<VariableRead> {
  const { value, valueFrom } = variable
  if (valueFrom === undefined || (value !== undefined && value !== ''))
    return { read: 'value', value: expandVariables(value ?? '', values) }
  return await readSource(valueFrom, context)
}

async function readSource(source: EnvVarSource, { resources, fields, port }: ReadContext): Promise<VariableRead> {
  if (source.secretKeyRef) {
    const { name = '', key, optional = false } = source.secretKeyRef
    const data = await port.secret(name)
    const encoded = data?.[key]
    if (encoded === undefined)
      return optional ? { read: 'omitted' } : missingKey(`Secret ${fields.namespace}/${name}`, key, data)
    const value = decodeText(encoded)
    return value === undefined
      ? {
          read: 'invalid',
          why: `is key ${JSON.stringify(key)} of Secret ${fields.namespace}/${name}, which is not UTF-8 text`,
        }
      : { read: 'value', value, secret: true }
  }
  if (source.configMapKeyRef) {
    const { name = '', key, optional = false } = source.configMapKeyRef
    const data = await port.configMap(name)
    const value = data?.[key]
    if (value === undefined)
      return optional ? { read: 'omitted' } : missingKey(`ConfigMap ${fields.namespace}/${name}`, key, data)
    return { read: 'value', value }
  }
  if (source.fieldRef) return readField(source.fieldRef.fieldPath, fields)
  if (source.resourceFieldRef) return readResource(source.resourceFieldRef, resources)
  return {
    read: 'invalid',
    why: 'has an unsupported valueFrom: use secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef',
  }
}

const missingKey = (object: string, key: string, data: object | undefined): VariableRead => ({
  read: 'missing',
  reference:
    data === undefined
      ? `${object}, which does not exist`
      : `key ${JSON.stringify(key)} of ${object}, which has no such key`,
})

function readField(fieldPath: string, fields: FieldValues): VariableRead {
  const known: Readonly<Record<string, string>> = {
    'spec.nodeName': fields.nodeName,
    'status.hostIP': fields.hostIp,
    'status.podIP': fields.hostIp,
    'metadata.namespace': fields.namespace,
  }
  const value = known[fieldPath]
  return value === undefined
    ? { read: 'invalid', why: `asks for field ${fieldPath}; supported are ${Object.keys(known).join(', ')}` }
    : { read: 'value', value }
}

type ResourceReference = NonNullable<EnvVarSource['resourceFieldRef']>

/** Why a resourceFieldRef has no value in a package with these resources, for people; undefined if it has one. */
export function resourceProblem(reference: ResourceReference, resources: PackageResources = {}): string | undefined {
  const read = readResource(reference, resources)
  return read.read === 'invalid' ? read.why : undefined
}

function readResource({ resource, divisor }: ResourceReference, resources: PackageResources = {}): VariableRead {
  const known: Readonly<Record<string, string | number | undefined>> = {
    'limits.cpu': resources.cpuLimit,
    'limits.memory': resources.memoryLimit,
    'requests.cpu': resources.cpuRequest,
    'requests.memory': resources.memoryRequest,
  }
  if (!Object.hasOwn(known, resource))
    return { read: 'invalid', why: `asks for resource ${resource}; supported are ${Object.keys(known).join(', ')}` }
  const quantity = known[resource]
  if (quantity === undefined)
    return { read: 'invalid', why: `asks for ${resource}, which the package's resources do not set` }
  // the API server stores an absent divisor as 0
  const unit = divisor === undefined || divisor === '' || Number(divisor) === 0 ? '1' : divisor
  const count = countIn(quantity, unit)
  return count === undefined
    ? { read: 'invalid', why: `asks for ${resource} = ${quantity} in ${unit}, which is not a number` }
    : { read: 'value', value: String(count) }
}

function decodeText(base64: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, 'base64'))
  } catch {
    return undefined // not UTF-8: no variable of a unit can hold it
  }
}

const cacheReads = (port: ReferencePort): ReferencePort => ({
  secret: perText((name) => port.secret(name)),
  configMap: perText((name) => port.configMap(name)),
})
