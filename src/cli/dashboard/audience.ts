/** The pages that follow the fleet: each is sent what has changed since it was last sent something. */
import type { SkyhookStatus } from '../status/fleet-status.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import type { EventStream } from './event-stream.ts'
import { type LaneHistory, lanesOf, withSlots } from './lanes.ts'
import type { Identity, PageEvents } from './page-data.ts'
import { changesOf, defaultSkyhook, overviewOf, squaresOf, statusesOf } from './rollout.ts'
import type { FleetMoment } from './source.ts'

export type Audience = {
  /** To be called with each moment, in order. Lanes grow with it, whether somebody watches or not. */
  show(moment: FleetMoment): void
  /** Adds a page that shows a Skyhook; undefined: the one that needs a look most. Returns what removes it. */
  add(stream: EventStream<PageEvents>, skyhook: string | undefined): () => void
  close(): void
}

type Member = {
  readonly stream: EventStream<PageEvents>
  /** The one that was chosen stays, also when another one would be chosen now. */
  skyhook: string | undefined
  /** By node. */
  readonly squares: Map<string, string>
  /** By event. */
  readonly sent: Map<string, string>
}

export function createAudience(identity: Identity): Audience {
  const members = new Set<Member>()
  let lanes: LaneHistory = new Map()
  let latest: { readonly moment: FleetMoment; readonly statuses: Known<readonly SkyhookStatus[]> } | undefined

  /** What is the same as before is not sent again. */
  function sendChanged<Name extends keyof PageEvents>(member: Member, event: Name, data: PageEvents[Name]): void {
    const text = JSON.stringify(data)
    if (member.sent.get(event) === text) return
    member.sent.set(event, text)
    member.stream.send(event, data)
  }

  function update(member: Member): void {
    // it is sent all of it once it has caught up
    if (latest === undefined || member.stream.isBehind()) return
    const { moment, statuses } = latest
    member.stream.send('overview', overviewOf(moment, statuses))
    const list = statuses.known ? statuses.value : []
    const name = (member.skyhook ??= defaultSkyhook(list))
    if (name === undefined) return
    const status = list.find((one) => one.name === name)
    sendChanged(member, 'rollout', { name, status })
    const limit = status?.budget.known === true ? status.budget.value.limit : undefined
    sendChanged(member, 'lanes', lanesOf(lanes, name, typeof limit === 'number' ? limit : undefined))
    const squares = squaresOf(moment, name) ?? known([])
    if (!squares.known) return
    const changes = changesOf(member.squares, squares.value)
    if (changes.isFull || changes.changed.length > 0 || changes.removed.length > 0) member.stream.send('nodes', changes)
  }

  return {
    show(moment) {
      lanes = withSlots(lanes, moment.fleet.slots, moment.fleet.takenAtMs)
      latest = { moment, statuses: statusesOf(moment) }
      for (const member of members) update(member)
    },
    add(stream, skyhook) {
      const member: Member = { stream, skyhook, squares: new Map(), sent: new Map() }
      members.add(member)
      stream.send('identity', identity)
      update(member)
      return () => void members.delete(member)
    },
    close() {
      for (const { stream } of members) stream.close()
      members.clear()
    },
  }
}
