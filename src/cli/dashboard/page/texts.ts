/** How states and times are said, and what marks them beside their color. */
import { durationText } from '../../explain/duration-text.ts'
import type { NodeSquare } from '../page-data.ts'

export type Status = NodeSquare['status']

/** In the order of the bar and the legend. */
export const statuses: readonly Status[] = [
  'complete',
  'in_progress',
  'erroring',
  'blocked',
  'unknown',
  'waiting',
  'paused',
  'disabled',
]

export const statusText = (status: Status): string => status.replace('_', ' ')

/** One line for a tooltip, a screen reader and the filter. */
export function describe({ node, status, reason, message, phase }: NodeSquare): string {
  const slot = phase === undefined ? '' : `, has a slot (${phase})`
  const why = reason === undefined ? '' : `, ${reason}: ${(message ?? '').split('\n')[0]}`
  return `${node}: ${statusText(status)}${slot}${why}`
}

/** What the tool's clock is ahead of the browser's, in ms. */
let clockOffsetMs = 0

export function setClock(nowMs: number): void {
  clockOffsetMs = nowMs - Date.now()
}

export const nowMs = (): number => Date.now() + clockOffsetMs

export const agoText = (atMs: number): string => durationText(nowMs() - atMs)

/** Of the day, in the browser's zone. */
export const timeText = (atMs: number): string => new Date(atMs).toLocaleTimeString('en-GB')

export const nodesText = (count: number): string => `${count} ${count === 1 ? 'node' : 'nodes'}`
