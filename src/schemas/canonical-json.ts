import { hash } from 'node:crypto'

/** JSON with sorted keys and no blanks; empty and absent values are left out, so both hash alike. Arrays keep order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(compact(value)) ?? 'null'
}

export const sha256Hex = (text: string): string => hash('sha256', text)

function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => compact(item) ?? null)
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
      .map(([key, item]) => [key, compact(item)] as const)
      .filter(([, item]) => item !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
    return entries.length === 0 ? undefined : Object.fromEntries(entries)
  }
  return value === null || value === '' || value === false ? undefined : value
}
