/**
 * The same pure function of an object that never changes, computed once for each: specs and versions of a Node stay the
 * same over many decisions.
 */
export function perObject<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>()
  return (key) => {
    let entry = known.get(key)
    if (entry === undefined) known.set(key, (entry = { value: compute(key) }))
    return entry.value
  }
}
