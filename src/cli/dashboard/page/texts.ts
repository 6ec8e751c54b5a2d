/** How a node and times are said. */
import { durationText } from '../../base/output/durations.ts'
import { statusName } from '../../base/output/rollout-texts.ts'
import type { NodeSquare, PageState } from '../page-data.ts'

/** One line for a tooltip, a screen reader and the filter. */
export function describe({ node, zone, status, reason, message, phase }: NodeSquare): string {
  const place = zone === undefined ? '' : ` in zone ${zone}`
  const slot = phase === undefined ? '' : `, has a slot (${phase})`
  const why = reason === undefined ? '' : `, ${reason}: ${(message ?? '').split('\n')[0]}`
  return `${node}${place}: ${statusName(status)}${slot}${why}`
}

let clock: () => number = Date.now

/** The tool's clock, which continues; that of an archive stands still at the time at which it was made. */
export function setClock({ nowMs, identity }: PageState): void {
  const aheadMs = nowMs - Date.now()
  clock = identity.isLive ? () => Date.now() + aheadMs : () => nowMs
}

export const nowMs = (): number => clock()

export const agoText = (atMs: number): string => durationText(nowMs() - atMs)

/** Of the day, in the browser's zone. */
export const timeText = (atMs: number): string => new Date(atMs).toLocaleTimeString('en-GB')

/** With the day and the zone, for what may be long ago. */
export const dateText = (atMs: number): string =>
  new Date(atMs).toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'long' })
