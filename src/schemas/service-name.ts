/** Names of services as people give them to `systemctl`, and what systemd takes of them. */

/** systemd's own: UNIT_NAME_MAX without its NUL. */
const maxUnitNameBytes = 255
const unitTypes = 'service|socket|target|timer|mount|automount|swap|path|slice|scope|device'
const typeSuffix = new RegExp(`\\.(?:${unitTypes})$`)
/** `name`, or `name@instance`, with its type. A template, which has an empty instance, is no unit that could run. */
const unitName = new RegExp(`^[A-Za-z0-9:_.\\\\-]+(?:@[A-Za-z0-9:_.\\\\@-]+)?\\.(?:${unitTypes})$`)

/** The unit that people mean by the name of a service: `kubelet` is `kubelet.service`, as systemctl has it. */
export const serviceUnit = (name: string): string => (typeSuffix.test(name) ? name : `${name}.service`)

export type NameProblem = { readonly problem: string; readonly remedy: string }

/** Why no unit can have the name; undefined when one can. Whether a host has such a unit is another question. */
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
