/**
 * The same pure function of an immutable object, computed once for each: specs and versions of a Node stay the same
 * over many decisions.
 */
export function perObject<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>()
  return (key) => {
    let entry = known.get(key)
    if (entry === undefined) known.set(key, (entry = { value: compute(key) }))
    return entry.value
  }
}

/** The same of an object and a name, such as a Node and a Skyhook. */
export function perObjectAndName<K extends object, V>(
  compute: (key: K, name: string) => V,
): (key: K, name: string) => V {
  const namesOf = perObject((_key: K) => new Map<string, { readonly value: V }>())
  return (key, name) => {
    const names = namesOf(key)
    let entry = names.get(name)
    if (entry === undefined) names.set(name, (entry = { value: compute(key, name) }))
    return entry.value
  }
}

/** The same of a text, for as long as the returned function is kept. */
export function perText<V>(compute: (text: string) => V): (text: string) => V {
  const known = new Map<string, V>()
  return (text) => {
    const value = known.get(text) ?? compute(text)
    known.set(text, value)
    return value
  }
}
