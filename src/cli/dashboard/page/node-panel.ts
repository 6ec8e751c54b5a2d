/** What a click on a node shows: why it is not complete, packages, Events, commands, and the output of its steps. */
import type { NodeAnswer, OutputEvents, OutputLine } from '../page-data.ts'
import { attemptsText, runningStepText } from '../../output/running-steps.ts'
import { byId, commandToCopy, element, setText } from './dom.ts'
import { markOpened } from './grid.ts'
import { shownArchive } from './identity-view.ts'
import { ask } from './requests.ts'
import { messageOf } from '../../../schemas/json.ts'
import { agoText, nowMs, timeText } from './texts.ts'

type Shown = {
  readonly skyhook: string
  readonly node: string
  readonly from: HTMLElement
  readonly output: EventSource
}

const panel = byId('panel')
const body = byId('panel-body')
const actionList = byId('panel-actions')
const output = byId('output')
const maxOutputLines = 2_000

let shown: Shown | undefined
let drawn = ''

export function startPanel(): void {
  byId('panel-close').addEventListener('click', closePanel)
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && shown !== undefined) closePanel()
  })
}

/** `from` gets the focus back when the panel closes. */
export function openPanel(skyhook: string, node: string, from: HTMLElement): void {
  shown?.output.close()
  const source = new EventSource(`api/output?${new URLSearchParams({ skyhook, node })}`)
  source.addEventListener('lines', ({ data }: MessageEvent<string>) =>
    addOutput(JSON.parse(data) as OutputEvents['lines']),
  )
  source.addEventListener('note', ({ data }: MessageEvent<string>) =>
    setText(byId('output-note'), JSON.parse(data) as string),
  )
  source.addEventListener('open', () => output.replaceChildren()) // it starts over, also after a break
  shown = { skyhook, node, from, output: source }
  drawn = ''
  body.replaceChildren(element('p', {}, 'Reading …'))
  actionList.replaceChildren()
  setText(byId('output-note'), shownArchive() === undefined ? 'As the agent has logged it.' : '')
  setText(byId('panel-title'), `Node ${node}`)
  panel.hidden = false
  markOpened(node)
  byId('panel-title').focus()
  void refreshPanel()
}

function closePanel(): void {
  if (shown === undefined) return
  shown.output.close()
  const { from, node } = shown
  shown = undefined
  panel.hidden = true
  output.replaceChildren()
  markOpened(undefined)
  const back = from.isConnected ? from : document.querySelector<HTMLElement>(`[data-node="${CSS.escape(node)}"]`)
  back?.focus()
}

/** The node that is shown. */
export const openedNode = (): string | undefined => shown?.node

/** Another Skyhook is shown now. */
export const forgetPanel = closePanel

/** Asks again; what somebody is about to copy stays as it is. */
export async function refreshPanel(): Promise<void> {
  if (shown === undefined || isInUse()) return
  const { skyhook, node } = shown
  let content: readonly HTMLElement[]
  let commands: readonly HTMLElement[] = []
  let text: string
  try {
    const { nowMs, ...answer } = await ask<NodeAnswer>('api/node', { skyhook, node })
    text = JSON.stringify(answer)
    content = contentOf({ nowMs, ...answer })
    // the answer stays the same while Events only get older, so nothing is drawn again
    for (const age of body.querySelectorAll<HTMLElement>('[data-at-ms]'))
      setText(age, eventAge(Number(age.dataset['atMs'])))
    commands = actionsOf(answer)
  } catch (error) {
    text = messageOf(error)
    content = [element('p', {}, text)]
  }
  if (shown?.node !== node || shown.skyhook !== skyhook || text === drawn) return
  if (isInUse()) return
  drawn = text
  body.replaceChildren(...content)
  actionList.replaceChildren(...commands)
}

const isInUse = (): boolean => body.contains(document.activeElement) || actionList.contains(document.activeElement)

const stateTexts: Readonly<Record<NodeAnswer['explanation']['state'], string>> = {
  complete: 'Complete.',
  working: 'At work, nothing holds it up.',
  'held-up': 'Held up.',
  'not-selected': 'Not selected.',
}

function contentOf({ explanation, packages, events }: NodeAnswer): readonly HTMLElement[] {
  const { state, verdict, gates, disagreement, doubt, left = [], isClosed, step } = explanation
  const ends = left.length === 0 ? '' : `The interrupt ends pods that tolerate the cordon: ${left.join(', ')}`
  const closed =
    isClosed === undefined ? '' : 'The node takes no new pods until it is complete: it has the runtime-required taint'
  const notes = [closed, ends, disagreement, doubt && `What is done on the host is not known for sure: ${doubt}`]
  return [
    element('p', {}, element('strong', {}, stateTexts[state]), verdict === undefined ? '' : ` ${verdict.message}.`),
    ...(step === undefined ? [] : [element('p', {}, `${runningStepText(step, nowMs())}.`)]),
    ...(verdict === undefined
      ? []
      : [
          ...(verdict.sinceMs === undefined
            ? []
            : [element('p', {}, `For ${agoText(verdict.sinceMs)}${attemptsText(verdict, nowMs())}.`)]),
          element('p', {}, `What opens it: ${verdict.unblock}`),
          commandToCopy(verdict.command),
        ]),
    ...notes.flatMap((note) => (note === undefined || note === '' ? [] : [element('p', {}, `Note: ${note}.`)])),
    element('h3', {}, 'Gates'),
    ...gateList(gates),
    element('h3', {}, 'Packages'),
    packages.length === 0 ? element('p', {}, 'None yet.') : packageTable(packages),
    element('h3', {}, 'Events'),
    ...eventList(events),
  ]
}

function eventList({ newest, unread }: NodeAnswer['events']): readonly HTMLElement[] {
  const rows = newest.flatMap(({ about, reason, message, atMs }) => [
    element('dt', { 'data-at-ms': atMs }, eventAge(atMs)),
    element('dd', {}, `${about} ${reason}: ${message}`),
  ])
  const notes = newest.length === 0 && unread.length === 0 ? ['None within the last hour.'] : []
  return [
    ...(rows.length === 0 ? [] : [element('dl', { class: 'events' }, ...rows)]),
    ...[...notes, ...unread.map((why) => `Unknown: ${why}.`)].map((text) => element('p', {}, text)),
  ]
}

const eventAge = (atMs: number): string => `${agoText(atMs)} ago`

const actionsOf = ({ actions }: Pick<NodeAnswer, 'actions'>): readonly HTMLElement[] => [
  element('h3', {}, 'Commands to copy'),
  element('p', { class: 'hint' }, actionsHint()),
  ...actions.flatMap(({ what, command }) => [element('small', {}, what), commandToCopy(command)]),
]

const actionsHint = (): string =>
  shownArchive() === undefined
    ? 'The page changes nothing: run them where you have a terminal.'
    : 'The page changes nothing. Commands without --from are for the cluster as it is now: name its context.'

/** Those that hold the node up one by one, the others in a line each. */
function gateList(gates: NodeAnswer['explanation']['gates']): readonly HTMLElement[] {
  const closed = gates.filter(({ verdict }) => verdict === 'closed' || verdict === 'unknown')
  const rows = closed.flatMap(({ gate, verdict, findings, why = '' }) => [
    element('dt', {}, `${gate}: ${verdict}`),
    element('dd', {}, findings.length === 0 ? why : findings.map(({ message }) => message).join('\n')),
  ])
  const others = (['open', 'ahead'] as const).flatMap((verdict) => {
    const names = gates.filter((one) => one.verdict === verdict).map(({ gate }) => gate)
    return names.length === 0 ? [] : [element('p', {}, element('strong', {}, verdict), `: ${names.join(', ')}`)]
  })
  return [...(rows.length === 0 ? [] : [element('dl', { class: 'gates' }, ...rows)]), ...others]
}

function packageTable(packages: NodeAnswer['packages']): HTMLElement {
  const head = ['Package', 'Version', 'Stage', 'State', 'Restarts'].map((text) => element('th', { scope: 'col' }, text))
  const rows = packages.map(({ name, version, stage, state, restarts }) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, name),
      ...[version, stage, state, String(restarts)].map((text) => element('td', {}, text)),
    ),
  )
  return element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows))
}

function addOutput(lines: readonly OutputLine[]): void {
  const isAtEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 4
  output.append(...lines.map((line) => `${outputText(line)}\n`))
  while (output.childNodes.length > maxOutputLines) output.firstChild?.remove()
  if (isAtEnd) output.scrollTop = output.scrollHeight
}

const outputText = ({ atMs, package: name, stage, text }: OutputLine): string =>
  `${atMs === undefined ? '' : `${timeText(atMs)} `}${name} ${stage}: ${text}`
