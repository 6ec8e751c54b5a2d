/** The Events that the panel of a node shows. Pure. */
import type { Known } from '../../stages/model/snapshot.ts'
import type { NodeEvent } from '../fleet-view/node-detail.ts'
import { valueOr } from '../fleet-view/readable.ts'
import type { EventRow, PanelEvents } from './page-data.ts'

/** The panel is narrow, and has more to say. */
const maxEvents = 5

type EventsOfBoth = { readonly node: Known<readonly NodeEvent[]>; readonly skyhook: Known<readonly NodeEvent[]> }

/** The newest of the Node and of the Skyhook together, and why some may be missing. */
export function panelEvents({ node, skyhook }: EventsOfBoth): PanelEvents {
  const rowsOf = (about: EventRow['about'], events: Known<readonly NodeEvent[]>): readonly EventRow[] =>
    valueOr(events, []).map(({ reason, message, atMs }) => ({ about, reason, message, atMs }))
  const rows = [...rowsOf('Node', node), ...rowsOf('Skyhook', skyhook)]
  const unread = [node, skyhook].flatMap((events) => (events.known ? [] : [events.why]))
  return { newest: rows.toSorted((a, b) => b.atMs - a.atMs).slice(0, maxEvents), unread: [...new Set(unread)] }
}
