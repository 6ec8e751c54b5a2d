/** Secret values in texts that people read. */

/** Secrets shorter than this are not masked: `1` or `on` would turn every log into stars and is not a secret. */
const minMaskedSecretChars = 4

/** The text with every secret value, and every line of a secret of several lines, replaced by `***`. */
export const maskSecrets = (text: string, secrets: readonly string[]): string => maskText(text, maskedParts(secrets))

/**
 * What `maskText` replaces: each secret without the white space around it, and each of its lines. One that would be too
 * short without the white space is replaced with it.
 */
export function maskedParts(secrets: readonly string[]): readonly string[] {
  const trimmed = (secret: string): string => (secret.trim().length < minMaskedSecretChars ? secret : secret.trim())
  const parts = new Set(
    secrets.flatMap((secret) => [trimmed(secret), ...secret.split('\n').map((line) => line.trim())]),
  )
  const maskedParts = [...parts].filter((part) => part.length >= minMaskedSecretChars)
  return maskedParts.sort((a, b) => b.length - a.length) // a longer one may contain a shorter
}

/** The text with each of `maskedParts` replaced by `***`. */
export const maskText = (text: string, parts: readonly string[]): string =>
  parts.reduce((rest, part) => rest.replaceAll(part, '***'), text)
