/** All artifacts of a release: each with what is in it and how it was made. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { hexOf } from '../../src/packages/oci/reference.ts'
import { type BuiltImage, rootBlob } from '../../src/packages/oci/write/layout.ts'
import { isLeftOut } from '../../src/cli/package/image.ts'
import { bundle, bundleCli } from '../bundle.ts'
import type { CliPackages } from '../cli-packages.ts'
import type { Architecture } from '../debian-packages.ts'
import { goVersion } from '../go-program.ts'
import { readPins } from '../image.ts'
import { fetchRuntime } from '../runtime-layer.ts'
import type { Artifact } from './artifact.ts'
import type { PinnedImage } from './chart-package.ts'
import { filesBelow, sha256OfFile } from './checksums.ts'
import {
  debianIngredients,
  fileIngredient,
  imageIngredient,
  type Ingredient,
  launcherIngredient,
  nodeIngredient,
  npmIngredients,
  readLockFile,
} from './ingredients.ts'
import type { NamedImage } from './layout-folder.ts'
import { provenance } from './provenance.ts'
import { cycloneDx } from './sbom.ts'

export type BuiltRelease = {
  readonly repository: string
  readonly version: string
  readonly prefix: string
  readonly url: string | undefined
  /** The sources' commit. */
  readonly commit: string
  readonly isLocked: boolean
  readonly folder: string
  /** For what is not kept. */
  readonly work: string
  readonly pinned: PinnedImage
  readonly agent: NamedImage
  readonly chart: NamedImage
  readonly packages: readonly NamedImage[]
  readonly cli: CliPackages
}

/** Writes `sbom` and `provenance` into the folder: two files for each artifact. @throws Error where a license is unknown */
export async function describeArtifacts(release: BuiltRelease): Promise<void> {
  const { folder, repository, commit } = release
  const builder = {
    commit,
    lockFileSha256: sha256OfFile(join(repository, 'package-lock.json')),
    tools: { node: process.version, go: await goVersion() },
  }
  for (const name of ['sbom', 'provenance']) mkdirSync(join(folder, name))
  for (const artifact of [
    ...(await agentImages(release)),
    ...manifests(release),
    ...packageImages(release),
    ...(await tools(release)),
  ]) {
    writeFileSync(join(folder, 'sbom', `${artifact.name}.cdx.json`), cycloneDx(artifact))
    writeFileSync(join(folder, 'provenance', `${artifact.name}.intoto.json`), provenance(artifact, builder))
  }
}

async function agentImages({ repository, work, version, agent, pinned, isLocked }: BuiltRelease): Promise<Artifact[]> {
  const { packages } = await bundle({ folder: join(work, 'agent') })
  const bundled = npmIngredients(packages, readLockFile(repository))
  const common = { type: 'container', version, parameters: {} } as const
  const each = agent.images.map((image): Artifact => {
    const ingredients = [...runtime(image.architecture as Architecture, isLocked), ...bundled]
    const name = `skyhookd-image-${image.architecture}`
    return { ...common, name, subjects: [subjectOf(name, image)], ingredients }
  })
  const images = agent.images.map(({ architecture, manifest }) => ({
    ...imageIngredient('skyhookd', version, manifest.descriptor.digest),
    name: `skyhookd-image-${architecture}`,
  }))
  const index = { name: 'skyhookd-image', sha256: pinned.digest.slice('sha256:'.length) }
  return [{ ...common, name: index.name, subjects: [index], ingredients: images }, ...each]
}

/** What runs the agent and the tool. */
function runtime(architecture: Architecture, isLocked: boolean): Ingredient[] {
  const pins = readPins()
  const { packages } = fetchRuntime(architecture, pins, isLocked)
  return [
    nodeIngredient(pins, architecture, process.versions),
    ...debianIngredients(packages, architecture, pins.debian.versionId),
  ]
}

function manifests({ folder, version, prefix, pinned, chart }: BuiltRelease): Artifact[] {
  const about = {
    version,
    ingredients: [imageIngredient(pinned.repository, version, pinned.digest)],
    parameters: { registry: prefix },
  }
  const chartFile = `skyhookd-${version}.tgz`
  const files = ['crds', 'daemonset', 'overlay', 'samples', 'gitops'].flatMap((name) =>
    filesBelow(join(folder, name)).map((path) => fileSubject(folder, `${name}/${path}`)),
  )
  return [
    {
      ...about,
      name: chartFile,
      type: 'application',
      subjects: [fileSubject(folder, chartFile)],
      alsoMade: chart.images.map((image) => subjectOf(`${chart.name}:${chart.tag}`, image)),
    },
    { ...about, name: 'manifests', type: 'file', subjects: files },
  ]
}

function packageImages({ repository, packages }: BuiltRelease): Artifact[] {
  return packages.map(({ name, tag, images }): Artifact => {
    const folder = join(repository, name)
    const files = filesBelow(folder).filter((path) => !isLeftOut(path))
    return {
      name: `${name.replace('packages/', 'package-')}-${tag}`,
      type: 'container',
      version: tag,
      subjects: [{ name: `${name}:${tag}`, sha256: hexOf(rootBlob(images).descriptor.digest) }],
      alsoMade: images.map((image) => subjectOf(`${name}:${tag} ${image.architecture}`, image)),
      ingredients: files.map((path) => fileIngredient(`skyhook-package/${path}`, sha256OfFile(join(folder, path)))),
      parameters: {},
    }
  })
}

async function tools({ repository, folder, work, version, url, cli, isLocked }: BuiltRelease): Promise<Artifact[]> {
  const { packages } = await bundleCli(join(work, 'tool'))
  const bundled = npmIngredients(packages, readLockFile(repository))
  const launcher = launcherIngredient(await goVersion())
  const artifact = (file: string, ingredients: readonly Ingredient[], parameters = {}): Artifact => ({
    name: basename(file),
    type: 'application',
    version,
    subjects: [fileSubject(folder, `cli/${basename(file)}`)],
    ingredients,
    parameters,
  })
  return [
    artifact(cli.npm, bundled),
    ...cli.archives.map(({ file, architecture }) =>
      artifact(file, [...runtime(architecture, isLocked), launcher, ...bundled]),
    ),
    ...(cli.krew === undefined || url === undefined
      ? []
      : [
          artifact(
            cli.krew,
            cli.archives.map(({ fileName, sha256 }) => fileIngredient(fileName, sha256)),
            { url },
          ),
        ]),
  ]
}

const fileSubject = (folder: string, path: string) => ({ name: path, sha256: sha256OfFile(join(folder, path)) })

const subjectOf = (name: string, { manifest }: BuiltImage) => ({ name, sha256: hexOf(manifest.descriptor.digest) })
