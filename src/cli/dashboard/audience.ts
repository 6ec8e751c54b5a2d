/** The pages that follow the fleet: each is sent all that it shows whenever something changes. */
import type { EventStream } from './event-stream.ts'
import { type LaneHistory, withSlots } from './lanes.ts'
import type { Identity, PageState } from './page-data.ts'
import { pageState } from './page-state.ts'
import type { FleetMoment } from './source.ts'

export type Audience = {
  /** To be called with each moment, in order. Lanes grow with it, whether somebody watches or not. */
  show(moment: FleetMoment): void
  /** Adds a page that shows a Skyhook; undefined: the one that needs a look most. Returns what removes it. */
  add(stream: EventStream<PageState>, skyhook: string | undefined): () => void
}

type Member = {
  readonly stream: EventStream<PageState>
  /** The one that was chosen stays, also when another one would be chosen now. */
  skyhook: string | undefined
}

export function createAudience(identity: Identity): Audience {
  const members = new Set<Member>()
  let lanes: LaneHistory = new Map()
  let latest: FleetMoment | undefined

  function update(member: Member): void {
    if (latest === undefined || member.stream.isBehind()) return
    const state = pageState(identity, latest, lanes, member.skyhook)
    member.skyhook ??= state.rollout?.name
    member.stream.send(state)
  }

  return {
    show(moment) {
      lanes = withSlots(lanes, moment.fleet.slots, moment.fleet.takenAtMs)
      latest = moment
      for (const member of members) update(member)
    },
    add(stream, skyhook) {
      const member: Member = { stream, skyhook }
      members.add(member)
      update(member)
      return () => void members.delete(member)
    },
  }
}
