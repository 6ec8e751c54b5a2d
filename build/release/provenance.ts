/** From what and how an artifact was made: SLSA provenance 1 in an in-toto statement. Pure. */
import type { Artifact } from './artifact.ts'

export type Builder = {
  /** Of the sources; nothing else was in the working tree. */
  readonly commit: string
  /** Of package-lock.json, which pins every tool from npm. */
  readonly lockFileSha256: string
  /** Versions of what compresses and compiles. */
  readonly tools: Readonly<Record<string, string>>
}

const builderId = 'urn:skyhookd:make-release'
const buildType = 'urn:skyhookd:make-release:v1'

/** The same for the same artifact, wherever and whenever it is made: it names no time, no machine and no person. */
export function provenance(
  { subjects, alsoMade = [], ingredients, parameters, version }: Artifact,
  { commit, lockFileSha256, tools }: Builder,
): string {
  const materials = ingredients.flatMap(({ purl, hash }) =>
    purl === undefined || hash === undefined ? [] : [{ uri: purl, digest: { [hash.algorithm]: hash.hex } }],
  )
  return `${JSON.stringify(
    {
      _type: 'https://in-toto.io/Statement/v1',
      subject: [...subjects, ...alsoMade].map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
      predicateType: 'https://slsa.dev/provenance/v1',
      predicate: {
        buildDefinition: {
          buildType,
          externalParameters: { version, ...parameters },
          resolvedDependencies: [
            { name: 'sources', digest: { gitCommit: commit } },
            { name: 'package-lock.json', digest: { sha256: lockFileSha256 } },
            ...materials,
          ],
        },
        runDetails: { builder: { id: builderId, version: tools } },
      },
    },
    null,
    2,
  )}\n`
}
