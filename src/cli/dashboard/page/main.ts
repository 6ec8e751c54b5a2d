/** The page of `kubectl skyhook dashboard`: it shows what the tool sends, and asks for what is clicked. */
import type { Overview, PageEvents } from '../page-data.ts'
import { byId, setText } from './dom.ts'
import { changeNodes, setFilter, startGrid } from './grid.ts'
import { archiveAgeText, drawIdentity, shownArchive } from './identity-view.ts'
import { drawLanes, setLanes, setSlotsUnknown, startLanes } from './lanes-view.ts'
import { forgetPanel, openedNode, openPanel, refreshPanel, startPanel } from './node-panel.ts'
import { startPlan } from './plan-view.ts'
import { drawRollout, drawSkyhooks, summaryOf } from './rollout-view.ts'
import { agoText, setClock, timeText } from './texts.ts'

const tickMs = 1_000
/** Ages of what has not changed. */
const agesIntervalMs = 5_000
/** A click shows what has changed since, though nothing has changed on the node itself. */
const panelRefreshMs = 10_000
/** Screen readers announce progress this often. */
const summaryIntervalMs = 15_000
/** A connection that comes back within this is not worth a word. */
const silentRetryMs = 2_500

let events: EventSource | undefined
let chosen = skyhookInAddress()
let overview: Overview | undefined
let rollout: PageEvents['rollout'] | undefined
let brokenAtMs: number | undefined

// the token has been used; without it the address can be reloaded
history.replaceState(null, '', `${location.pathname}${location.hash}`)

function skyhookInAddress(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get('skyhook') ?? undefined
}

function choose(name: string): void {
  if (name === chosen) return
  location.hash = new URLSearchParams({ skyhook: name }).toString()
}

function connect(): void {
  events?.close()
  const query = chosen === undefined ? '' : `?${new URLSearchParams({ skyhook: chosen })}`
  const source = new EventSource(`api/events${query}`)
  events = source
  const on = <Name extends keyof PageEvents>(name: Name, act: (data: PageEvents[Name]) => void): void =>
    source.addEventListener(name, ({ data }: MessageEvent<string>) => act(JSON.parse(data) as PageEvents[Name]))
  source.addEventListener('open', () => {
    brokenAtMs = undefined
    drawBanner()
  })
  source.addEventListener('error', () => {
    brokenAtMs ??= Date.now()
  })
  on('identity', drawIdentity)
  on('overview', (data) => {
    overview = data
    setClock(data.nowMs, shownArchive() === undefined)
    drawSkyhooks(data.skyhooks, chosen, choose)
    drawAge()
    drawBanner()
  })
  on('rollout', (data) => {
    const isFirst = rollout?.name !== data.name
    rollout = data
    chosen = data.name
    document.title = `${data.name} – Skyhook ${shownArchive() === undefined ? 'dashboard' : 'archive'}`
    drawRollout(data, setFilter)
    setSlotsUnknown(data.status?.budget.known === false ? data.status.budget.why : undefined)
    if (overview !== undefined) drawSkyhooks(overview.skyhooks, chosen, choose)
    if (isFirst) setText(byId('summary'), summaryOf(data))
  })
  on('nodes', (data) => {
    changeNodes(data)
    if (data.changed.some(({ node }) => node === openedNode())) void refreshPanel()
  })
  on('lanes', setLanes)
}

function drawAge(): void {
  if (overview === undefined) return
  const archive = shownArchive()
  if (archive !== undefined) return setText(byId('age'), archiveAgeText(archive))
  const { contactAtMs, freshness } = overview
  const isLive = freshness.state === 'live' && brokenAtMs === undefined
  setText(byId('age'), `${isLive ? 'live' : 'old'}, last answer ${agoText(contactAtMs)} ago`)
}

function drawBanner(): void {
  const banner = byId('banner')
  if (brokenAtMs !== undefined) {
    if (Date.now() - brokenAtMs < silentRetryMs) return
    const since = timeText(brokenAtMs)
    const shown = shownArchive() === undefined ? ': what is shown is of then' : ''
    const text = `kubectl skyhook dashboard does not answer since ${since}${shown}`
    return setText(banner, `${text}. Start it again and open its new link.`)
  }
  if (overview?.freshness.state !== 'lost') return setText(banner, '')
  const { sinceMs, why } = overview.freshness
  setText(banner, `The API server does not answer since ${timeText(sinceMs)}: what is shown is of then. (${why})`)
}

startGrid((node, from) => {
  if (chosen !== undefined) openPanel(chosen, node, from)
})
startLanes((node, from) => {
  if (chosen !== undefined) openPanel(chosen, node, from)
})
startPanel()
startPlan(() => chosen)
addEventListener('hashchange', () => {
  chosen = skyhookInAddress()
  forgetPanel()
  connect()
})
connect()
setInterval(() => {
  drawAge()
  drawBanner()
  drawLanes()
}, tickMs)
setInterval(() => {
  if (rollout !== undefined) drawRollout(rollout, setFilter)
}, agesIntervalMs)
setInterval(() => void refreshPanel(), panelRefreshMs)
setInterval(() => {
  if (rollout !== undefined) setText(byId('summary'), summaryOf(rollout))
}, summaryIntervalMs)
