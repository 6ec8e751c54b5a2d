/**
 * The value under a name that people choose: of a package, a Skyhook, a compartment, a label. Undefined for a name that
 * the object only inherits, such as `constructor`, which is a valid name.
 */
export function ownValue<T>(values: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined
}
