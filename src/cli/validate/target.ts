/** What `validate` is given: a file, a folder or an image. */
import { basename, dirname, join, resolve } from 'node:path'
import { createLocalRoot, type HostRoot } from '../../host/fs/host-root.ts'
import { type ExaminedPackage, examinePath } from '../../packages/validate/examine.ts'
import { type Finding, hasErrors } from '../../schemas/finding.ts'
import { isObject } from '../../schemas/json.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { notFoundError } from '../framework/command-error.ts'
import { readDocuments } from './documents.ts'
import { examineReference, type ImagePorts } from './image.ts'
import { isOurs, resourceFindings } from './resource.ts'
import type { ExaminedTarget, GivenSkyhook } from './together.ts'

export type TargetPorts = ImagePorts & { readonly readText: (path: string) => Promise<string> }

/** Examines one target. @throws CommandError where nothing is there */
export async function examineTarget(ports: TargetPorts, target: string): Promise<readonly ExaminedTarget[]> {
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
