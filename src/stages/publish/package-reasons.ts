import { reasonsKey, type PublishedReason } from '../../schemas/annotations.ts'
import type { TimedReason } from '../model/plan.ts'
import { isObject, parseObject } from '../../schemas/json.ts'
import { ownValue } from '../../schemas/own-value.ts'
import { clip } from '../../schemas/plain-text.ts'
import { counted } from '../../schemas/wording.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { settleMs } from '../model/write-pace.ts'
import { isSameReason, publishedReason } from './published-reason.ts'

/** Annotations of a Node share 256 KiB. */
const maxBytes = 4_096
/** Maximum lengths of messages to try, in characters, until all packages fit. */
const shortestMessage = 128
const messageLengths = [1_024, 512, 256, shortestMessage]

type Entries = readonly (readonly [name: string, reason: PublishedReason])[]

/**
 * Text of the annotation with the reason of every failing package, the worst first; null without any. An entry keeps
 * its `since` while all else stays. A new entry is written once it has lasted a while, or together with another change.
 */
export function packageReasonsText(
  snapshot: Snapshot,
  skyhook: string,
  reasons: ReadonlyMap<string, TimedReason> = new Map(),
  isWriting: boolean,
): { readonly text: string | null; readonly recheckAtMs: number } {
  const currentText = snapshot.node.metadata.annotations?.[reasonsKey(skyhook)]
  const current = parseObject(currentText) ?? {}
  const entries: (readonly [string, PublishedReason])[] = []
  let recheckAtMs = Infinity
  for (const [name, reason] of reasons) {
    const shown = shownReason(ownValue(current, name))
    const isShown = shown !== undefined && isSameReason(shown, reason)
    const { sinceMs, firstSinceMs = sinceMs } = reason
    const settledAtMs = (shown ? sinceMs : firstSinceMs) + settleMs(snapshot)
    const isNew = !isShown && settledAtMs > snapshot.nowMs && !isWriting
    if (isNew) recheckAtMs = Math.min(recheckAtMs, settledAtMs)
    if (isNew || isShown) entries.push(...(shown ? [[name, shown] as const] : []))
    else entries.push([name, publishedReason(reason, snapshot)])
  }
  return { text: entries.length === 0 ? null : bounded(entries), recheckAtMs }
}

function shownReason(value: unknown): PublishedReason | undefined {
  if (!isObject(value)) return undefined
  const { reason, message, code, package: key, since, attempts, nextTry } = value
  if (typeof reason !== 'string' || typeof message !== 'string' || typeof since !== 'string') return undefined
  return {
    reason,
    message,
    ...(typeof code === 'string' && { code }),
    ...(typeof key === 'string' && { package: key }),
    since,
    ...(typeof attempts === 'number' && { attempts }),
    ...(typeof nextTry === 'string' && { nextTry }),
  }
}

/** Shortens messages, then leaves out the last packages and counts them. */
function bounded(entries: Entries): string {
  for (const length of messageLengths) {
    const text = textOf(withShortMessages(entries, length))
    if (Buffer.byteLength(text) <= maxBytes) return text
  }
  const short = withShortMessages(entries, shortestMessage)
  return (
    short
      .map(([, { reason, since }], kept) => {
        const omitted = { reason, message: counted(short.length - kept, 'more package'), since }
        return textOf([...short.slice(0, kept), ['…', omitted]])
      })
      .findLast((text) => Buffer.byteLength(text) <= maxBytes) ?? '{}'
  )
}

const withShortMessages = (entries: Entries, length: number): Entries =>
  entries.map(([name, reason]) => [name, { ...reason, message: clip(reason.message, length) }])

const textOf = (entries: Entries): string => JSON.stringify(Object.fromEntries(entries))
