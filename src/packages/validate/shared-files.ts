/** Finds files that several packages of one host install. */
import type { Finding } from '../../schemas/finding.ts'
import { counted } from '../../schemas/wording.ts'
import type { ExaminedPackage } from './examine.ts'

/** Adds a warning to each package that has a file of `root_dir/` with different content than an earlier package. */
export function withSharedFiles(examined: readonly ExaminedPackage[]): readonly ExaminedPackage[] {
  return examined.map((one, index) => ({
    ...one,
    findings: [...one.findings, ...examined.slice(0, index).flatMap((other) => findingOf(one, other) ?? [])],
  }))
}

function findingOf(one: ExaminedPackage, other: ExaminedPackage): Finding | undefined {
  if (one.package === undefined || other.package === undefined || one.package.name === other.package.name)
    return undefined
  const { hostFiles } = other.package
  const paths = [...one.package.hostFiles]
    .filter(([path, content]) => hostFiles.has(path) && hostFiles.get(path) !== content)
    .map(([path]) => path)
  const [path, ...more] = paths
  if (path === undefined) return undefined
  const also = more.length === 0 ? '' : `, as ${more.length === 1 ? 'does' : 'do'} ${counted(more.length, 'more file')}`
  return {
    severity: 'warning',
    file: one.subject,
    pointer: '',
    message:
      `root_dir${path} has different content in ${other.subject}${also}: ` +
      'a host with both has the content of the last stage',
    rule: 'root-dir/conflict',
    remedy: 'ship the file in one package only, or rename it in one of them',
  }
}
