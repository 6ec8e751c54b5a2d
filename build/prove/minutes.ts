/** How the minutes of `make prove` are divided, so that each part gets on in each run. */

/** Of the whole time: the rest is for the long parts, however much the short ones still have to do. */
const shortShare = 0.5

/** Less is not worth booting hosts for. */
const minLongMinutes = 1

/**
 * For the next part; undefined: as long as it takes. What one part leaves over is for those after it.
 * @param all undefined: until everything is proven
 * @param spent of all, so far
 * @param longLeft long parts that are not proven, with the next one if it is long
 */
export function minutesFor(
  isShort: boolean,
  { all, spent, longLeft }: { readonly all: number | undefined; readonly spent: number; readonly longLeft: number },
): number | undefined {
  if (all === undefined) return undefined
  if (isShort) return Math.max(0, (longLeft === 0 ? all : all * shortShare) - spent)
  return Math.max(minLongMinutes, (all - spent) / longLeft)
}
