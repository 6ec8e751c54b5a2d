/** Kubernetes quantities (`500m`, `2`, `1.5Gi`, `128M`, `1e3`), exact: computed in thousandths as bigint. */

const binaryFactors: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
}
const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}

/** More digits than any real limit has; keeps the arithmetic small. */
const quantityPattern = /^\+?(\d{0,30})(?:\.(\d{0,30}))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,2}))$/

/**
 * The quantity in thousandths, rounded up as the API server does; undefined if the text is not a quantity or is
 * negative.
 */
export function milliQuantity(quantity: string | number): bigint | undefined {
  const match = quantityPattern.exec(String(quantity).trim())
  if (!match) return undefined
  const [, whole = '', fraction = '', binarySuffix, decimalSuffix = '', exponent] = match
  if (whole === '' && fraction === '') return undefined

  const digits = BigInt(whole + fraction)
  const factor = binarySuffix === undefined ? 1n : (binaryFactors[binarySuffix] ?? 1n)
  const power =
    3 - fraction.length + (exponent === undefined ? (decimalExponents[decimalSuffix] ?? 0) : Number(exponent))
  return power >= 0 ? digits * factor * 10n ** BigInt(power) : divideUp(digits * factor, 10n ** BigInt(-power))
}

/** The value of a resourceFieldRef: the quantity divided by `divisor` in whole units (cores, bytes), rounded up. */
export function countIn(quantity: string | number, divisor: string | number): bigint | undefined {
  const amount = milliQuantity(quantity)
  const unit = milliQuantity(divisor)
  return amount === undefined || unit === undefined || unit === 0n ? undefined : divideUp(amount, unit)
}

const divideUp = (amount: bigint, by: bigint): bigint => (amount + by - 1n) / by
