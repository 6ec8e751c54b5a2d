import { imageHost } from '../reference.ts'
import { type Credential, canonicalImage, findLogin, type Login } from './credentials.ts'

/** The logins for one repository at one address. */
export type FoundLogins = {
  /** In the order in which to try them. If empty, the request is anonymous. */
  readonly logins: readonly Login[]
  /** Where they come from: "unauthorized" alone does not show whether a secret is missing or wrong. */
  readonly hint: string
  readonly onAccepted: (login: Login) => void
  readonly onRefused: () => void
}

/** Where `credentials` come from: pull secrets for an agent, docker login for a person. */
export type LoginSource = 'a pull secret' | 'docker login'

export type Logins = {
  /** Logins of the pull secrets or, if none matches, of the provider. Rejects only with the signal's reason. */
  find(host: string, repository: string, signal: AbortSignal): Promise<FoundLogins>
  /** The same without calling the provider: only what is known already. */
  known(host: string, repository: string): FoundLogins
  /** Logins of the provider that a registry accepted, each for its repository alone. */
  provided(): readonly Credential[]
}

/** The logins of one client. Calls the provider once for each repository and address. */
export function createLogins(
  credentials: readonly Credential[],
  provider: LoginProvider | undefined,
  source: LoginSource = 'a pull secret',
): Logins {
  const answers = new Map<string, ProvidedLogins>()
  const accepted = new Map<string, Credential>()

  function found(host: string, repository: string, image: string): FoundLogins {
    const secret = findLogin(credentials, host, repository)
    if (secret !== undefined)
      return { logins: [secret], hint: `used the login of ${source}`, onAccepted() {}, onRefused() {} }
    const answer = answers.get(image)
    return {
      logins: answer?.logins ?? [],
      hint: hintOf(answer, `${host}/${repository}`, source),
      onAccepted: (login) => void accepted.set(image, { images: canonicalImage(image), login }),
      onRefused() {
        if (answer !== undefined && answer.logins.length > 0) provider?.forget(image)
        answers.delete(image)
        accepted.delete(image)
      },
    }
  }

  const imageOf = (host: string, repository: string): string => `${imageHost(host)}/${repository}`

  return {
    async find(host, repository, signal) {
      const image = imageOf(host, repository)
      const isAsked = provider !== undefined && findLogin(credentials, host, repository) === undefined
      if (isAsked && !answers.has(image)) answers.set(image, await provider.loginsOf(image, signal))
      return found(host, repository, image)
    },
    known: (host, repository) => found(host, repository, imageOf(host, repository)),
    provided: () => [...accepted.values()],
  }
}

function hintOf(answer: ProvidedLogins | undefined, place: string, source: LoginSource): string {
  const noSecret =
    source === 'docker login' ? `docker login has no login for ${place}` : `no pull secret matches ${place}`
  if (answer === undefined) return noSecret
  const { logins, providers, problems } = answer
  const names = providers.join(', ')
  if (logins.length > 0) return [`used the login of the kubelet's credential provider ${names}`, ...problems].join('; ')
  if (problems.length > 0) return `${noSecret}; credential providers of the kubelet: ${problems.join('; ')}`
  if (providers.length > 0)
    return `${noSecret}, and ${names} of the kubelet's credential providers gave no login for it`
  return `${noSecret}, and no credential provider of the kubelet does`
}

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
