import { clip } from '../../schemas/plain-text.ts'
import { ImageError } from '../oci/errors.ts'

/**
 * Classifies the names inside a layer. Only the package folder of an image is used. A name that is not clearly inside
 * or outside of it refuses the image: names are never repaired. Pure; the unpacker writes files and checks links on the
 * disk.
 */
export type LayerName =
  | { readonly kind: 'outside' }
  /** Relative to the package folder; empty for the folder itself. */
  | { readonly kind: 'entry'; readonly path: string }
  /** Hides the path of lower layers; empty for the whole package folder. */
  | { readonly kind: 'whiteout'; readonly path: string }
  /** Hides everything of lower layers below the path. */
  | { readonly kind: 'opaque'; readonly path: string }

/** Where a package image keeps its files: the operator's package format. */
export const packageFolder = 'skyhook-package'

const whiteoutPrefix = '.wh.' // OCI image layer specification, "Whiteouts"
const opaqueWhiteout = '.wh..wh..opq'
const aufsMetadataPrefix = '.wh..wh.' // aufs kept its own files under such names; they mean nothing to other programs

/** @throws ImageError bad-image for a name that could leave the image's root or cannot be written unchanged */
export function readLayerName(name: string): LayerName {
  const components = readComponents(name)
  const last = components.at(-1)
  if (last === undefined) return { kind: 'outside' } // the image's root itself
  const parents = components.slice(0, -1)
  if (parents.some((component) => component.startsWith(whiteoutPrefix))) return { kind: 'outside' }

  if (last === opaqueWhiteout) {
    if (parents.length === 0) return { kind: 'whiteout', path: '' }
    return parents[0] === packageFolder ? { kind: 'opaque', path: packagePath(parents) } : { kind: 'outside' }
  }
  if (last.startsWith(aufsMetadataPrefix)) return { kind: 'outside' }
  if (last.startsWith(whiteoutPrefix)) {
    const target = last.slice(whiteoutPrefix.length)
    if (target === '' || target === '.' || target === '..')
      throw new ImageError('bad-image', `${quote(name)} hides no file`)
    const hiddenPath = [...parents, target]
    return hiddenPath[0] === packageFolder ? { kind: 'whiteout', path: packagePath(hiddenPath) } : { kind: 'outside' }
  }
  return components[0] === packageFolder ? { kind: 'entry', path: packagePath(components) } : { kind: 'outside' }
}

/** The path inside the package of the target of a hard link. @throws ImageError bad-image if the target is elsewhere */
export function readHardLink(path: string, target: string | null | undefined): string {
  const name = target === null || target === undefined ? undefined : readLayerName(target)
  if (name?.kind !== 'entry' || name.path === '')
    throw new ImageError('bad-image', `${quote(path)} is a hard link to ${quote(target ?? '')}, outside the package`)
  return name.path
}

/**
 * Whether a symbolic link may be kept. The text of a relative link must stay inside the package. An absolute link names
 * a file of the host and is kept unchanged (`root_dir` masks a unit with a link to /dev/null). This check finds
 * mistakes. It is not a security boundary: a chain of links can still lead out, so code must never follow a link of a
 * package unchecked.
 * @throws ImageError bad-image
 */
export function checkSymbolicLink(path: string, target: string | null | undefined): string {
  if (target === null || target === undefined || target === '' || /[\0\uFFFD]/.test(target)) {
    throw new ImageError('bad-image', `${quote(path)} is a symbolic link with an invalid target`)
  }
  if (target.startsWith('/')) return target
  let depth = path.split('/').length - 1
  for (const component of target.split('/')) {
    if (component === '..') depth--
    else if (component !== '' && component !== '.') depth++
    if (depth < 0)
      throw new ImageError('bad-image', `${quote(path)} is a link to ${quote(target)}, which leaves the package`)
  }
  return target
}

function readComponents(name: string): string[] {
  const components = name.split('/').filter((component) => component !== '' && component !== '.')
  if (components.length > 0 && name.startsWith('/')) throw new ImageError('bad-image', `${quote(name)} is absolute`)
  if (components.includes('..')) throw new ImageError('bad-image', `${quote(name)} climbs`)
  if (/[\0\uFFFD]/.test(name) && components[0] === packageFolder) {
    throw new ImageError('bad-image', `${quote(name)} is not UTF-8`) // two such names could become equal
  }
  return components
}

function packagePath(components: readonly string[]): string {
  return components.slice(1).join('/')
}

const maxNameLength = 201

const quote = (name: string): string => JSON.stringify(clip(name, maxNameLength))
