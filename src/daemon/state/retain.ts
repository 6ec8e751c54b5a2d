/** Forgets every entry whose key is not needed any more. */
export function retain(entries: Map<string, unknown>, needed: ReadonlySet<string>): void {
  for (const key of entries.keys()) if (!needed.has(key)) entries.delete(key)
}
