/**
 * The demo's output. A terminal shows a block that is redrawn below the permanent lines; other outputs get lines only.
 */
import type { WriteStream } from 'node:tty'

export type Screen = {
  readonly isLive: boolean
  /** Prints a permanent line with the seconds since the start of the demo. */
  line(text: string): void
  /** Prints permanent text, of one or several lines, without a time. */
  text(text: string): void
  /** Replaces the block at the bottom; does nothing without a terminal. */
  draw(block: readonly string[]): void
  /** Makes the current block permanent. */
  keep(): void
}

export type Output = { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number }

const clearBelow = '\u001b[J'
const up = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A\r`)

/** `log` gets what is permanent, whole. */
export function createScreen(
  output: Output | WriteStream,
  nowMs: () => number,
  log: (text: string) => void = () => undefined,
): Screen {
  const startedMs = nowMs()
  const isLive = output.isTTY === true
  let block: readonly string[] = []

  // a wrapped line would count as two lines
  const fit = (text: string): string => (isLive ? text.slice(0, (output.columns ?? 120) - 1) : text)
  const renderBlock = (): string => block.map((text) => `${fit(text)}\n`).join('')
  const above = (text: string): void => {
    log(text)
    output.write(isLive ? `${up(block.length)}${clearBelow}${text}\n${renderBlock()}` : `${text}\n`)
  }

  return {
    isLive,
    line: (text) => above(`${secondsText(nowMs() - startedMs)}  ${text}`),
    text: above,
    draw(next) {
      if (!isLive || (next.length === block.length && next.every((text, index) => text === block[index]))) return
      const height = block.length
      block = next
      output.write(`${up(height)}${clearBelow}${renderBlock()}`)
    },
    keep() {
      block = []
    },
  }
}

/** `+  1.2 s`, of constant width below 1,000 s. */
export const secondsText = (ms: number): string => `+${(ms / 1000).toFixed(1).padStart(5)} s`

/** Columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
