import type { Login } from './credentials.ts'

/** Logins that come from elsewhere than from pull secrets: asked for once a registry wants a login and no secret matches. */
export type LoginProvider = {
  /**
   * The logins for an image, `host[:port]/repository`. Rejects only with the signal's reason: what went wrong is among
   * the problems.
   */
  loginsOf(image: string, signal: AbortSignal): Promise<ProvidedLogins>
  /** A registry has refused what was given for the image: it is not given again. */
  forget(image: string): void
}

export type ProvidedLogins = {
  /** To be tried in this order. */
  readonly logins: readonly Login[]
  /** Names of those who were asked. */
  readonly providers: readonly string[]
  /** Why others gave none, for people and without any secret. */
  readonly problems: readonly string[]
}
