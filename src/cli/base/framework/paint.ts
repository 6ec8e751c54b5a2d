/**
 * Color for a terminal. The text has the same meaning without it. A painter gets a line of clean text, and the text
 * does not change. Pure.
 */

/** Adds only color. */
export type Painter = (line: string) => string

const codes = { bold: 1, red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 } as const

export type Color = keyof typeof codes

export const painted = (color: Color, text: string): string =>
  text === '' ? '' : `\u001B[${codes[color]}m${text}\u001B[0m`

/** Paints the match of the first pattern that matches; the rest of the line stays as it is. */
export const painterOf =
  (rules: readonly (readonly [pattern: RegExp, color: (found: string) => Color | undefined])[]): Painter =>
  (line) => {
    for (const [pattern, colorOf] of rules) {
      if (line.search(pattern) < 0) continue
      return line.replace(pattern, (found) => {
        const color = colorOf(found)
        return color === undefined ? found : painted(color, found)
      })
    }
    return line
  }
