import { usageError } from '../framework/command-error.ts'

/** The user to impersonate, from flags or from a user of the kubeconfig. */
export type Impersonation = {
  readonly user?: string | undefined
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

/** The impersonation headers; none without a user. Throws a usage error for groups without a user. */
export function impersonationHeaders({ user, uid, groups, extra }: Impersonation): Record<string, string | string[]> {
  const others = [
    groups.length > 0 && '--as-group',
    uid !== undefined && '--as-uid',
    Object.keys(extra).length > 0 && '--as-user-extra',
  ]
  const other = others.find((one) => one !== false)
  if (user === undefined && other !== undefined) throw usageError(`${other} needs --as USER`)
  return {
    ...(user !== undefined && { 'impersonate-user': user }),
    ...(uid !== undefined && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': [...groups] }),
    ...Object.fromEntries(
      // keys may contain characters that are invalid in a header's name
      Object.entries(extra).map(([key, values]) => [
        `impersonate-extra-${encodeURIComponent(key.toLowerCase())}`,
        [...values],
      ]),
    ),
  }
}

/** Parses the `KEY=VALUE` of each `--as-user-extra`. */
export function parseExtra(texts: readonly string[]): Record<string, string[]> {
  const extra: Record<string, string[]> = {}
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw usageError(`--as-user-extra must be KEY=VALUE, got "${text}"`)
    ;(extra[text.slice(0, at)] ??= []).push(text.slice(at + 1))
  }
  return extra
}
