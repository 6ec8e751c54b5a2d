/** Skyhooks, and packages that they name and that are given with them: have they what these expect? Pure. */
import { ImageError } from '../../packages/oci/errors.ts'
import { parseReference } from '../../packages/oci/reference.ts'
import type { ExaminedPackage } from '../../packages/validate/examine.ts'
import type { Finding } from '../../schemas/finding.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { pointerSegment } from '../../schemas/validation.ts'
import { type MissingNames, missingOnHosts } from '../../stages/package/spec-problems.ts'

/** A Skyhook without errors. */
export type GivenSkyhook = {
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
