/** Forgets every entry whose key is no longer needed. */
export function retain(entries: Map<string, unknown>, needed: ReadonlySet<string>): void {
  for (const key of entries.keys()) if (!needed.has(key)) entries.delete(key)
}
