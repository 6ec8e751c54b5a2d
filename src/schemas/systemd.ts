/** Names of services as people give them to `systemctl`, and which of them systemd accepts. */

/** systemd's own: UNIT_NAME_MAX without its NUL. */
const maxUnitNameBytes = 255
const unitTypes = 'service|socket|target|timer|mount|automount|swap|path|slice|scope|device'
const typeSuffix = new RegExp(`\\.(?:${unitTypes})$`)
/** `name`, or `name@instance`, with its type. A template, which has an empty instance, cannot run. */
const unitName = new RegExp(`^[A-Za-z0-9:_.\\\\-]+(?:@[A-Za-z0-9:_.\\\\@-]+)?\\.(?:${unitTypes})$`)

/** The unit of a service's name: `kubelet` is `kubelet.service`, as in systemctl. */
export const serviceUnit = (name: string): string => (typeSuffix.test(name) ? name : `${name}.service`)

export type NameProblem = { readonly problem: string; readonly remedy: string }

/** Why no unit can have the name; undefined when one can. It does not check whether the host has the unit. */
export function serviceNameProblem(name: string): NameProblem | undefined {
  const unit = serviceUnit(name)
  if (unit.length > maxUnitNameBytes)
    return { problem: `is a unit name of ${unit.length} characters`, remedy: `systemd takes ${maxUnitNameBytes}` }
  if (unitName.test(unit)) return undefined
  if (/^[^@]+@(?:\.[a-z]+)?$/.test(name))
    return { problem: 'is a template without an instance', remedy: 'write one, such as getty@tty1' }
  return {
    problem: 'is not the name of a unit',
    remedy: 'write one with letters, digits and : - _ . @ \\ only, such as kubelet or getty@tty1.service',
  }
}

/** The number in a version of systemd such as `252.39-1~deb12u2`; undefined where there is none. */
export function systemdVersionNumber(version: string): number | undefined {
  const digits = /\d+/.exec(version)?.[0]
  return digits === undefined ? undefined : Number(digits)
}
