/** The rollout that is shown: counts, what nodes wait for, the budget and the pace; and the list of all of them. */
import type { Overview, PageEvents, SkyhookBrief } from '../page-data.ts'
import { attemptsText, runningStepText } from '../../output/running-steps.ts'
import { completePercent, shownStatuses, statusName } from '../../output/node-states.ts'
import { budgetUseText, paceText, packageText } from '../../output/rollout-texts.ts'
import { byId, element, setChildren, setText } from './dom.ts'
import { agoText, nowMs } from './texts.ts'
import { counted, named } from '../../../schemas/wording.ts'

type Rollout = NonNullable<PageEvents['rollout']['status']>

const maxNamed = 6
const maxReasons = 4

/** Also called when only time has passed. `onFilter`: somebody wants to see the nodes of a reason. */
export function drawRollout({ name, status }: PageEvents['rollout'], onFilter: (text: string) => void): void {
  setText(byId('rollout-title'), `Rollout of ${name}`)
  const note = status === undefined ? `There is no Skyhook ${name}.` : ''
  setText(byId('rollout-note'), note || (status?.nodes.known === false ? `Nodes are unknown: ${status.nodes.why}` : ''))
  setText(byId('progress-text'), status === undefined ? '' : countsText(status))
  setChildren(byId('bar'), status?.nodes.known === true ? barParts(status.nodes.value) : [])
  const lines = status === undefined ? [] : facts(status)
  setChildren(
    byId('facts'),
    lines.map((text) => element('li', {}, text)),
  )
  const groups = status?.groups ?? []
  drawReasons(groups, onFilter)
}

/** The worst stay in sight of the nodes; the rest is a click away. */
function drawReasons(groups: Rollout['groups'], onFilter: (text: string) => void): void {
  const focused = (document.activeElement as HTMLElement | null)?.dataset['reason']
  const items = groups.map((group, index) => reasonItem(group, `${group.reason} ${index}`, onFilter))
  const none = element('li', {}, 'Nothing.')
  setChildren(byId('reasons'), items.length === 0 ? [none] : items.slice(0, maxReasons))
  const rest = items.slice(maxReasons)
  byId('more').hidden = rest.length === 0
  setText(byId('more-title'), counted(rest.length, 'more reason'))
  setChildren(byId('more-reasons'), rest)
  if (focused !== undefined) document.querySelector<HTMLElement>(`[data-reason="${CSS.escape(focused)}"]`)?.focus()
}

function countsText({ nodes }: Rollout): string {
  if (!nodes.known) return ''
  const { selected, byStatus } = nodes.value
  if (selected === 0) return 'No node is selected.'
  const complete = byStatus.complete ?? 0
  return `${complete} of ${counted(selected, 'node')} complete (${completePercent(nodes.value)} %)`
}

/** For what a screen reader says once in a while. */
export function summaryOf({ name, status }: PageEvents['rollout']): string {
  if (status === undefined || !status.nodes.known) return ''
  const { byStatus } = status.nodes.value
  const troubled = (['erroring', 'blocked', 'unknown'] as const).flatMap((one) =>
    byStatus[one] ? [`${byStatus[one]} ${statusName(one)}`] : [],
  )
  return [`${name}: ${countsText(status)}`, ...troubled].join(', ')
}

function barParts({ selected, byStatus }: { selected: number; byStatus: Partial<Record<string, number>> }) {
  return shownStatuses.flatMap((status) => {
    const count = byStatus[status] ?? 0
    if (count === 0) return []
    const part = element('span', { class: 'paint', 'data-status': status })
    part.style.width = `${(100 * count) / selected}%`
    return [part]
  })
}

function facts(status: Rollout): readonly string[] {
  const { isPaused, isDisabled, isDeleting, stalled, packages, steps, closed, held, ignored, budget, pace } = status
  const { stalledSinceMs } = status
  const stalledFor = stalledSinceMs === undefined ? '' : ` for ${agoText(stalledSinceMs)}`
  return [
    ...(isDeleting ? ['It is being deleted.'] : []),
    ...(isDisabled ? ['It is disabled.'] : []),
    ...(isPaused ? ['It is paused.'] : []),
    ...(stalled === undefined ? [] : [`It is stalled${stalledFor}: ${stalled}`]),
    ...(packages.length === 0 ? [] : [`Packages: ${packages.map(packageText).join(', ')}`]),
    ...steps.map((step) => `${runningStepText(step, nowMs())}: ${named(step.nodes, maxNamed)}`),
    ...closed.flatMap(({ by, nodes }) =>
      by === 'keep-cordoned' ? [] : [`${counted(nodes.length, 'node')} ${closedTexts[by]}: ${named(nodes, maxNamed)}`],
    ),
    ...(held.length === 0 ? [] : [`Held (node hold): ${named(held, maxNamed)}`]),
    ...(ignored.length === 0 ? [] : [`Ignored (node ignore): ${named(ignored, maxNamed)}`]),
    `Budget: ${budgetText(budget)}`,
    ...(pace === undefined ? [] : [`Pace: ${paceText(pace)}`]),
  ]
}

const closedTexts = {
  taint: 'closed for new pods by the runtime-required taint, and nothing is at work there',
  cordon: 'cordoned by the Skyhook, and nothing is at work there',
} as const

function budgetText(budget: Rollout['budget']): string {
  if (!budget.known) return `unknown, ${budget.why}`
  const { limit, holders } = budget.value
  const listed = (some: typeof holders): string => {
    const texts = some.map(({ node, phase, sinceMs }) =>
      [node, `(${phase}${sinceMs === undefined ? '' : `, ${agoText(sinceMs)}`})`].join(' '),
    )
    return texts.length === 0 ? '' : `: ${named(texts, maxNamed)}`
  }
  const out = holders.filter(({ isJoining }) => isJoining !== true)
  const joining = holders.filter(({ isJoining }) => isJoining === true)
  const beside =
    joining.length === 0 ? '' : `; beside it ${counted(joining.length, 'node')} closed for new pods${listed(joining)}`
  return `${budgetUseText(limit, out.length)}${listed(out)}${beside}`
}

const sectionTexts = { failing: 'failing', blocked: 'blocked', waiting: 'waiting' } as const

function reasonItem(
  { reason, message, section, nodes, sinceMs, ...attempts }: Rollout['groups'][number],
  key: string,
  onFilter: (text: string) => void,
): HTMLElement {
  const forMs = sinceMs === undefined ? '' : `, for ${agoText(sinceMs)}`
  const since = `${forMs}${attemptsText(attempts, nowMs())}`
  const label = `show ${counted(nodes.length, 'node')}`
  const attributes = { type: 'button', class: 'link', 'data-reason': key, 'aria-label': `${label} with ${reason}` }
  const show = element('button', attributes, label)
  show.addEventListener('click', () => onFilter(reason))
  const head = element(
    'p',
    {},
    element('strong', {}, reason),
    ` ${counted(nodes.length, 'node')} ${sectionTexts[section]}${since} `,
    show,
  )
  return element(
    'li',
    { 'data-section': section },
    head,
    element('p', {}, message),
    element('small', {}, named(nodes, maxNamed)),
  )
}

/** All Skyhooks. `onChoose`: somebody wants to see another one. */
export function drawSkyhooks(
  skyhooks: Overview['skyhooks'],
  chosen: string | undefined,
  onChoose: (name: string) => void,
): void {
  const list = byId('skyhooks')
  if (!skyhooks.known) return setChildren(list, [element('li', {}, skyhooks.why)])
  if (skyhooks.value.length === 0) return setChildren(list, [element('li', {}, 'There is no Skyhook.')])
  const focused = (document.activeElement as HTMLElement | null)?.dataset['skyhook']
  setChildren(
    list,
    skyhooks.value.map((skyhook) => element('li', {}, skyhookButton(skyhook, chosen, onChoose))),
  )
  if (focused !== undefined) list.querySelector<HTMLElement>(`[data-skyhook="${CSS.escape(focused)}"]`)?.focus()
}

function skyhookButton(
  { name, selected, complete, troubled, flags }: SkyhookBrief,
  chosen: string | undefined,
  onChoose: (name: string) => void,
): HTMLElement {
  const counts = selected === undefined ? 'nodes unknown' : `${complete} of ${selected}`
  const needingLook = troubled === 0 ? [] : [`${troubled} in trouble`]
  const filled = element('span', { class: 'paint', 'data-status': 'complete' })
  filled.style.width = `${selected ? (100 * complete) / selected : 0}%`
  const button = element(
    'button',
    { type: 'button', 'data-skyhook': name, 'aria-current': name === chosen ? 'true' : undefined },
    element('span', { class: 'name' }, name),
    element('small', {}, [counts, ...needingLook, ...flags].join(', ')),
    element('span', { class: 'bar', 'aria-hidden': 'true' }, filled),
  )
  button.addEventListener('click', () => onChoose(name))
  return button
}
