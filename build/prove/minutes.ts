/** How the minutes of `make prove` are divided, so that each part gets on in each run. */

/** Of the whole time: the rest is for the long parts, however much the short ones still have to do. */
const shortShare = 0.5

/** Less is not worth a start. */
const minMinutes = 1

/**
 * For the next part, short ones first; undefined: as long as it takes. What one part leaves over is for those after it.
 * @param all undefined: until everything is proven
 * @param spent of all, so far
 * @param shortLeft parts that are not proven, with the next one
 */
export function minutesFor({
  all,
  spent,
  shortLeft,
  longLeft,
}: {
  readonly all: number | undefined
  readonly spent: number
  readonly shortLeft: number
  readonly longLeft: number
}): number | undefined {
  if (all === undefined) return undefined
  const untilLong = longLeft === 0 ? all : all * shortShare
  return Math.max(minMinutes, shortLeft > 0 ? (untilLong - spent) / shortLeft : (all - spent) / longLeft)
}
