/** Specs of Skyhooks and DeploymentPolicies, as short as a test wants them. */

type Json = Record<string, unknown>

export const tuning = { version: '1.1.0', image: 'registry.example.com:5000/skyhook-packages/shellscript' }
export const withPackage = (fields: Json): Json => ({ packages: { tuning: { ...tuning, ...fields } } })

/** `count` packages named `paa`, `pab`, …: a package's name has letters at both ends. */
export const manyPackages = (count: number, fields: Json = {}): Json => ({
  packages: Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `p${String.fromCharCode(97 + Math.floor(index / 26), 97 + (index % 26))}`,
      { ...tuning, ...fields },
    ]),
  ),
})
export const manyKeys = (count: number): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, '']))

export const pace = { budget: { count: 1 }, strategy: { fixed: {} } }
export const group = (name: string, fields: Json = {}): Json => ({
  name,
  selector: { matchLabels: { zone: name } },
  budget: { percent: 10 },
  ...fields,
})
