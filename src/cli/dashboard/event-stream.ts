/** Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html */
import type { ServerResponse } from 'node:http'
import { pageJson } from './page-json.ts'

export type EventStream<T> = {
  readonly send: (data: T) => void
  /** The browser does not keep up: what it has not read yet would be replaced by what comes next. */
  isBehind(): boolean
}

/** The browser tries again after this long, when the tool is started again or the machine wakes up. */
const retryMs = 2_000

/** Answers a request with events, until the browser leaves; then `onClose` is called. */
export function openEventStream<T>(response: ServerResponse, onClose: () => void): EventStream<T> {
  response.setHeader('content-type', 'text/event-stream')
  response.write(`retry: ${retryMs}\n\n`)
  response.once('close', onClose)
  return {
    send(data) {
      if (response.writableEnded || response.destroyed) return
      // JSON has no line ends of its own
      response.write(`data: ${pageJson(data)}\n\n`)
    },
    isBehind: () => response.writableNeedDrain,
  }
}
