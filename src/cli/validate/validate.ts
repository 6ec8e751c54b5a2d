import { tmpdir } from 'node:os'
import {
  withSharedFiles,
  type ExaminedPackage,
  examinePath,
  examineImages,
  failedImage,
} from '../../packages/validate/examine.ts'
import { formatFindings, hasErrors, type Finding } from '../../schemas/finding.ts'
import type { Context } from '../base/framework/command.ts'
import { type ExitCode, exitCodes, notFoundError } from '../base/framework/command-error.ts'
import type { RegistryFlags } from '../base/registry/flags.ts'
import { openRegistry } from '../base/registry/settings.ts'
import { basename, dirname, join, resolve } from 'node:path'
import { createLocalRoot, type HostRoot } from '../../host/fs/host-root.ts'
import { isObject } from '../../schemas/json.ts'
import type { SkyhookSpec, PackageSpec } from '../../schemas/skyhook.ts'
import { readDocuments } from './documents.ts'
import { isOurs, resourceFindings } from './resource.ts'
import { resolveImage, type ResolvedImage, selectImage } from '../../packages/oci/read/pull.ts'
import type { RegistryClient } from '../../packages/oci/read/registry.ts'
import { hexOf, type ImageReference, parseReference } from '../../packages/oci/reference.ts'
import { downloadLayers } from '../../packages/store/unpack-download.ts'
import type { ArchivedImage } from '../../packages/validate/archive.ts'
import type { Random } from '../../schemas/clock.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { pointerSegment } from '../../schemas/validation.ts'
import { type MissingNames, missingOnHosts } from '../../stages/package/spec-problems.ts'

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

type TargetPorts = ImagePorts & { readonly readText: (path: string) => Promise<string> }

/** Examines one target. @throws CommandError where nothing is there */
async function examineTarget(ports: TargetPorts, target: string): Promise<readonly ExaminedTarget[]> {
  if (target === '-') return examineText(await ports.readText('-'), 'stdin', true)
  const root = createLocalRoot(ports.random)
  const path = resolve(target)
  const stats = await root.stat(path)
  if (stats === undefined) {
    if (/^[^./].*[/:@]/.test(target)) return await examineReference(ports, target)
    throw notFoundError(`nothing to validate at ${target}`, 'name a file, a folder or an image with its tag')
  }
  if (!stats.isDirectory()) return await examineFile(ports, root, target, true)
  if (await isPackage(root, path)) return await examinePackage(ports, root, target)
  const examined = await examineTree(ports, root, target)
  if (examined.length > 0) return examined
  throw notFoundError(
    `${target} has neither packages nor Skyhooks`,
    'name a folder with config.json, or one with YAML files of Skyhooks',
  )
}

const isPackage = async (root: HostRoot, folder: string): Promise<boolean> =>
  (await root.stat(`${folder}/config.json`)) !== undefined || (await root.stat(`${folder}/skyhook_dir`)) !== undefined

async function examineTree(ports: TargetPorts, root: HostRoot, folder: string): Promise<ExaminedTarget[]> {
  const examined: ExaminedTarget[] = []
  const names = (await root.readdir(resolve(folder))).sort()
  for (const name of names) {
    if (name.startsWith('.') || name === 'node_modules') continue
    const path = join(folder, name)
    const stats = await root.lstat(resolve(path))
    if (stats?.isDirectory() === true) {
      const isOne = await isPackage(root, resolve(path))
      const inside = isOne ? await examinePackage(ports, root, path) : await examineTree(ports, root, path)
      examined.push(...(name === 'templates' && names.includes('Chart.yaml') ? templatesOnce(path, inside) : inside))
    } else if (stats?.isFile() === true && /\.ya?ml$/.test(name)) {
      examined.push(...(await examineFile(ports, root, path, false)))
    }
  }
  return examined
}

/** The templates of a Helm chart have the same finding, which one line says for all of them. */
function templatesOnce(folder: string, examined: readonly ExaminedTarget[]): ExaminedTarget[] {
  const isTemplate = ({ findings }: ExaminedTarget): boolean => findings[0]?.rule === 'yaml-template'
  const [first] = examined.find(isTemplate)?.findings ?? []
  if (first === undefined) return [...examined]
  const { severity, rule, remedy } = first
  const message = 'has templates of a Helm chart, not YAML'
  const finding: Finding = { severity, file: folder, pointer: '', message, rule, remedy }
  return [{ subject: folder, kind: 'folder', findings: [finding] }, ...examined.filter((one) => !isTemplate(one))]
}

async function examineFile(
  ports: TargetPorts,
  root: HostRoot,
  file: string,
  isNamed: boolean,
): Promise<readonly ExaminedTarget[]> {
  if (basename(file) === 'config.json' && (await isPackage(root, dirname(resolve(file)))))
    return await examinePackage(ports, root, dirname(file))
  const examination = await examinePath({ root, temporaryFolder: ports.temporaryFolder }, resolve(file), file)
  if (examination.outcome === 'examined') return examination.examined
  return examineText(await ports.readText(file), file, isNamed)
}

async function examinePackage(ports: TargetPorts, root: HostRoot, folder: string): Promise<ExaminedPackage[]> {
  const examination = await examinePath({ root, temporaryFolder: ports.temporaryFolder }, resolve(folder), folder)
  if (examination.outcome !== 'examined') return []
  const text = await root.readText(resolve(folder, 'config.json')).catch(() => undefined) // a folder, said already
  const document = text === undefined ? undefined : readDocuments(text).documents[0]
  return examination.examined.map((one) => ({
    ...one,
    findings: one.findings.map((finding) =>
      document === undefined ? finding : { ...finding, line: document.lineOf(finding.pointer) },
    ),
  }))
}

/** Every Skyhook and DeploymentPolicy of a text; a file that somebody named must have one. */
function examineText(text: string, file: string, isNamed: boolean): ExaminedTarget[] {
  const { documents, problems } = readDocuments(text)
  const examined: ExaminedTarget[] = []
  if (problems.length > 0) {
    const findings = problems.map((problem): Finding => ({ ...problem, file }))
    examined.push({ subject: file, kind: 'file', findings })
  }
  for (const document of documents) {
    for (const [object, pointer] of objectsOf(document.value)) {
      if (!isOurs(object)) continue
      const placeOf: GivenSkyhook['placeOf'] = (within) => ({
        file,
        line: document.lineOf(`${pointer}${within}`),
        pointer: `${pointer}${within}`,
      })
      const findings = resourceFindings(object).map((finding): Finding => ({ ...finding, ...placeOf(finding.pointer) }))
      const { kind, metadata, spec } = object
      const name = isObject(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : ''
      const one: ExaminedTarget = { subject: file, kind: `${String(kind)} ${name}`.trim(), findings }
      const isValidSkyhook = kind === 'Skyhook' && isObject(spec) && !hasErrors([one])
      const { packages = {} } = isValidSkyhook ? (spec as SkyhookSpec) : {}
      examined.push({ ...one, ...(isValidSkyhook && { skyhook: { packages, placeOf } }) })
    }
  }
  if (examined.length > 0 || !isNamed) return examined
  const finding: Finding = {
    severity: 'warning',
    file,
    pointer: '',
    message: 'has no object of skyhook.nvidia.com, so nothing was validated',
    rule: 'nothing-validated',
    remedy: 'name a file with a Skyhook or a DeploymentPolicy',
  }
  return [{ subject: file, kind: 'file', findings: [finding] }]
}

function objectsOf(value: unknown): [object: Readonly<Record<string, unknown>>, pointer: string][] {
  if (!isObject(value)) return []
  const { kind, items } = value
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [[value, '']]
  return items.flatMap((item: unknown, index) => (isObject(item) ? [[item, `/items/${index}`] as const] : [])) as [
    Readonly<Record<string, unknown>>,
    string,
  ][]
}

type ImagePorts = {
  readonly random: Random
  readonly signal: AbortSignal
  /** Absolute path. */
  readonly temporaryFolder: string
  readonly openRegistry: (host: string) => Promise<RegistryClient>
}

/** What the registry fails at is a finding; rejects for the disk and when the signal aborts. */
async function examineReference(ports: ImagePorts, text: string): Promise<ExaminedPackage[]> {
  const root = createLocalRoot(ports.random)
  const workFolder = await root.makeUniqueFolder(`${ports.temporaryFolder}/skyhook-validate-`, 0o700)
  let client: RegistryClient | undefined
  try {
    const reference = parseReference(text)
    client = await ports.openRegistry(reference.host)
    const resolved = await resolveImage(client, reference, ports.signal)
    const images = await download({ root, workFolder, signal: ports.signal }, client, resolved)
    const examined = await examineImages({ root, workFolder }, images, text)
    return examined.map((one) => ({ ...one, findings: [...one.findings, ...imageFindings(one, reference, resolved)] }))
  } catch (error) {
    ports.signal.throwIfAborted()
    return [failedImage(text, error)]
  } finally {
    client?.close()
    await root.remove(workFolder)
  }
}

const architecturesOf = ({ manifest }: ResolvedImage): string[] =>
  manifest.kind === 'image'
    ? []
    : [
        ...new Set(
          manifest.manifests.flatMap(({ platform }) => (platform?.os === 'linux' ? [platform.architecture] : [])),
        ),
      ]

async function download(
  { root, workFolder, signal }: { readonly root: HostRoot; readonly workFolder: string; readonly signal: AbortSignal },
  client: RegistryClient,
  resolved: ResolvedImage,
): Promise<ArchivedImage[]> {
  const images: ArchivedImage[] = []
  const folders = new Map<string, string>() // architectures often share their only layer
  const architectures = architecturesOf(resolved)
  for (const architecture of architectures.length === 0 ? [undefined] : architectures) {
    const { layers } = await selectImage(client, resolved, architecture ?? 'amd64', signal)
    const content = layers.map(({ digest }) => digest).join()
    const folder = folders.get(content) ?? `${workFolder}/layers-${folders.size}`
    if (!folders.has(content)) {
      folders.set(content, folder)
      await root.makeFolder(folder, 0o700)
      await downloadLayers(client, resolved.reference, layers, folder, signal)
    }
    const platform = architecture === undefined ? undefined : `linux/${architecture}`
    images.push({ platform, layers: layers.map(({ digest }) => `${folder}/${hexOf(digest)}`) })
  }
  return images
}

/** The architectures of almost all nodes. */
const commonArchitectures = ['amd64', 'arm64']

function imageFindings({ subject, package: found }: ExaminedPackage, { tag }: ImageReference, resolved: ResolvedImage) {
  const findings: Finding[] = []
  const warn = (rule: string, message: string, remedy: string): void =>
    void findings.push({ severity: 'warning', file: subject, pointer: '', message, rule, remedy })
  if (found !== undefined && tag !== undefined && tag.replace(/^v/, '') !== found.version) {
    const message = `has the tag ${tag} and package_version ${found.version}`
    warn('tag-version', message, 'push it under the tag that is its version')
  }
  const architectures = architecturesOf(resolved)
  const missing = commonArchitectures.filter((one) => !architectures.includes(one))
  if (resolved.manifest.kind === 'index' && missing.length > 0) {
    const message = `has no image for ${missing.join(', ')}: nodes of that architecture cannot pull it`
    warn('architecture', message, 'build it for amd64 and arm64')
  }
  return findings
}

/** A Skyhook without errors. */
type GivenSkyhook = {
  readonly packages: Readonly<Record<string, PackageSpec>>
  /** Where a place of the object is written. */
  readonly placeOf: (pointer: string) => Pick<Finding, 'file' | 'line' | 'pointer'>
}

export type ExaminedTarget = ExaminedPackage & { readonly skyhook?: GivenSkyhook }

type GivenPackage = NonNullable<ExaminedPackage['package']> & { readonly subject: string }

/** Adds to each Skyhook what agents would refuse about the packages that are given with it. */
export function checkedTogether(examined: readonly ExaminedTarget[]): readonly ExaminedPackage[] {
  const given = examined.flatMap((one): GivenPackage[] =>
    one.package === undefined ? [] : [{ ...one.package, subject: one.subject }],
  )
  return examined.map(({ skyhook, ...one }) => ({
    ...one,
    findings: [...one.findings, ...(skyhook === undefined ? [] : skyhookFindings(skyhook, given))],
  }))
}

const skyhookFindings = ({ packages, placeOf }: GivenSkyhook, given: readonly GivenPackage[]): Finding[] =>
  Object.entries(packages).flatMap(([key, spec]) => {
    const called = given.filter(({ name }) => name === lastName(spec.image))
    const meant = called.filter(({ version }) => version === spec.version.replace(/^v/, ''))
    const pointer = `/spec/packages/${pointerSegment(key)}`
    const [other] = called
    if (other !== undefined && meant.length === 0) return [otherVersion(other, spec, placeOf(`${pointer}/version`))]
    return meant.flatMap((one) => {
      const missing = missingOnHosts(one.config, spec, one.ownConfigFiles)
      return missingFindings(one, missing, (field) => placeOf(`${pointer}/${field}`))
    })
  })

/** By which a Skyhook and a package find each other: its own key for the package may be another one. */
function lastName(image: string): string | undefined {
  try {
    return parseReference(image).repository.split('/').at(-1)
  } catch (error) {
    if (!(error instanceof ImageError)) throw error
    return undefined // said already
  }
}

function missingFindings(
  { subject }: GivenPackage,
  { files, variables }: MissingNames,
  placeOf: (field: 'configMap' | 'env') => Pick<Finding, 'file' | 'line' | 'pointer'>,
): Finding[] {
  const lacks = (field: 'configMap' | 'env', names: readonly string[], who: string, remedy: string): Finding[] =>
    names.length === 0
      ? []
      : [
          {
            severity: 'error',
            ...placeOf(field),
            message: `lacks ${names.join(', ')}, which ${who}`,
            rule: `package/${field}`,
            remedy,
          },
        ]
  return [
    ...lacks('configMap', files, `${subject} expects`, 'add the keys, or ship the files in configmaps/ of the package'),
    ...lacks('env', variables, `arguments of steps of ${subject} name`, 'set the variables'),
  ]
}

const otherVersion = (
  { subject, version }: GivenPackage,
  spec: PackageSpec,
  place: Pick<Finding, 'file' | 'line' | 'pointer'>,
): Finding => ({
  severity: 'warning',
  ...place,
  value: spec.version,
  message: `is not ${version}, the version of ${subject}: they were not checked against each other`,
  rule: 'package/version',
  remedy: 'write the version of the package, or give the package of this version',
})
