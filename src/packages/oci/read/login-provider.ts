import type { Login } from './credentials.ts'

/**
 * Provides logins that do not come from pull secrets. Called if a registry requires a login and no pull secret matches.
 */
export type LoginProvider = {
  /**
   * The logins for an image, `host[:port]/repository`. Rejects only with the signal's reason; failures are in
   * `problems`.
   */
  loginsOf(image: string, signal: AbortSignal): Promise<ProvidedLogins>
  /** A registry has refused the logins for the image: they are not returned again. */
  forget(image: string): void
}

export type ProvidedLogins = {
  /** In the order in which to try them. */
  readonly logins: readonly Login[]
  /** Names of the providers that were called. */
  readonly providers: readonly string[]
  /** Why other providers returned no login, for people and without any secret. */
  readonly problems: readonly string[]
}
