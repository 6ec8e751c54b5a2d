/** Finds likely secrets in texts. Pure. */

/** Replaces the secret. It is one word, so that JSON and command lines keep their form. */
export const leftOut = '[left-out]'

const names = [
  'password',
  'passwd',
  'passphrase',
  'pwd',
  'secret',
  'token',
  'api[_-]?key',
  'access[_-]?key',
  'private[_-]?key',
  'credentials?',
  'authorization',
  'cookie',
]
const word = `(?:${names.join('|')})`
/** A name that contains one of the words. Bounded, so that the time is linear in the length of the text. */
const name = String.raw`[\w.-]{0,40}${word}[\w.-]{0,40}`

type Pattern = { readonly pattern: RegExp; readonly instead: string }

const patterns: readonly Pattern[] = [
  // up to its end, or to the end of a text that was cut
  {
    pattern: /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g,
    instead: leftOut,
  },
  { pattern: /\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?/g, instead: leftOut }, // a JSON web token
  { pattern: /\b(Bearer|Basic)\s+[\w+/.~=-]{6,}/gi, instead: `$1 ${leftOut}` },
  { pattern: /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"'\\]+@/gi, instead: `$1${leftOut}@` },
  { pattern: /\b(?:AKIA|ASIA)[0-9A-Z]{12,}/g, instead: leftOut },
  {
    pattern: /\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AIza|sk-|nvapi-|hf_|dckr_pat_|npm_)[\w-]{16,}/g,
    instead: leftOut,
  },
  // name and value as in JSON and YAML; in JSON within JSON, quotes have backslashes
  {
    pattern: new RegExp(String.raw`(${name}["']?\s*[:=]\s*)(["'])(?:\\.|(?!\2)[^\\])*`, 'gi'),
    instead: `$1$2${leftOut}`,
  },
  {
    pattern: new RegExp(String.raw`(${name}\\+["']\s*[:=]\s*)(\\+["'])(?:(?!\2).)*`, 'gis'),
    instead: `$1$2${leftOut}`,
  },
  // and as in environments, queries and flags
  {
    pattern: new RegExp(String.raw`(${name}\s*[:=]\s*|--${name}\s+)([^\s"'\\,;&)\]}]+)`, 'gi'),
    instead: `$1${leftOut}`,
  },
]

/** Replaces everything in the text that looks like a secret, even if it is not one. */
export const maskLikelySecrets = (text: string): string =>
  patterns.reduce((masked, { pattern, instead }) => masked.replace(pattern, instead), text)

const secretName = new RegExp(word, 'i')
/** Fields with names of objects, which show where a secret is, not its value. */
const referenceName = /(?:Name|Ref|Names|Secrets)$|^(?:secret|caSecret)$/

/** Whether a field of this name holds a secret, if it is text. */
export const isSecretField = (name: string): boolean => secretName.test(name) && !referenceName.test(name)
