/** The rollout that is shown: counts, the budget and the pace, what nodes wait for; and the list of all Skyhooks. */
import { h, type ComponentChild } from 'preact'
import type { PageState, Rollout, SkyhookBrief } from '../page-data.ts'
import {
  attemptsText,
  runningStepText,
  completePercent,
  shownStatuses,
  statusName,
  budgetUseText,
  paceText,
  packageText,
} from '../../base/output/rollout-texts.ts'
import { agoText, nowMs } from './texts.ts'
import { counted, named } from '../../../schemas/wording.ts'

type Status = NonNullable<Rollout['status']>
type Group = Status['groups'][number]

const maxNamed = 6
const maxReasons = 4

export function Progress({ rollout }: { readonly rollout: Rollout | undefined }): ComponentChild {
  const status = rollout?.status
  return h('section', { 'aria-labelledby': 'rollout-title' }, [
    h('h2', { id: 'rollout-title' }, rollout === undefined ? 'Rollout' : `Rollout of ${rollout.name}`),
    h('p', { id: 'rollout-note' }, noteOf(rollout)),
    h('p', { id: 'progress-text' }, status && countsText(status)),
    h('div', { id: 'bar', class: 'bar', 'aria-hidden': true }, status?.nodes.known && barParts(status.nodes.value)),
    h('ul', { id: 'facts', role: 'list' }, status && facts(status).map((text) => h('li', null, text))),
  ])
}

function noteOf(rollout: Rollout | undefined): string {
  if (rollout === undefined) return 'Waiting for the first data.'
  const { name, status } = rollout
  if (status === undefined) return `There is no Skyhook ${name}.`
  return status.nodes.known ? '' : `Nodes are unknown: ${status.nodes.why}`
}

function countsText({ nodes }: Status): string {
  if (!nodes.known) return ''
  const { selected, byStatus } = nodes.value
  if (selected === 0) return 'No node is selected.'
  const complete = byStatus.complete ?? 0
  return `${complete} of ${counted(selected, 'node')} complete (${completePercent(nodes.value)} %)`
}

/** For what a screen reader says once in a while. */
export function summaryOf({ name, status }: Rollout): string {
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
    const style = { width: `${(100 * count) / selected}%` }
    return count === 0 ? [] : [h('span', { key: status, class: 'paint', 'data-status': status, style })]
  })
}

function facts(status: Status): readonly string[] {
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

function budgetText(budget: Status['budget']): string {
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

/** The worst stay in sight of the nodes; the rest is a click away. `onFilter`: somebody wants to see these nodes. */
export function Reasons({ groups, onFilter }: ReasonsProperties): ComponentChild {
  const items = groups.map((group, index) =>
    reasonItem(group, `${group.reason} ${index}`, () => onFilter(group.reason)),
  )
  const rest = items.slice(maxReasons)
  return h('section', { 'aria-labelledby': 'reasons-title' }, [
    h('h2', { id: 'reasons-title' }, 'What nodes wait for'),
    h('ul', { id: 'reasons', class: 'reasons', role: 'list' }, [
      items.length === 0 ? h('li', null, 'Nothing.') : items.slice(0, maxReasons),
    ]),
    h('details', { hidden: rest.length === 0 }, [
      h('summary', null, counted(rest.length, 'more reason')),
      h('ul', { class: 'reasons', role: 'list' }, rest),
    ]),
  ])
}

type ReasonsProperties = {
  readonly groups: readonly Group[]
  readonly onFilter: (text: string) => void
}

const sectionTexts = { failing: 'failing', blocked: 'blocked', waiting: 'waiting' } as const

function reasonItem(
  { reason, message, section, nodes, sinceMs, ...attempts }: Group,
  key: string,
  onShow: () => void,
): ComponentChild {
  const forMs = sinceMs === undefined ? '' : `, for ${agoText(sinceMs)}`
  const since = `${forMs}${attemptsText(attempts, nowMs())}`
  const label = `show ${counted(nodes.length, 'node')}`
  const button = { type: 'button', class: 'link', 'aria-label': `${label} with ${reason}`, onClick: onShow } as const
  const text = ` ${counted(nodes.length, 'node')} ${sectionTexts[section]}${since} `
  return h('li', { key, 'data-section': section }, [
    h('p', null, h('strong', null, reason), text, h('button', button, label)),
    h('p', null, message),
    h('small', null, named(nodes, maxNamed)),
  ])
}

/** All Skyhooks. `onChoose`: somebody wants to see another one. */
export function Skyhooks({ skyhooks, chosen, onChoose }: SkyhooksProperties): ComponentChild {
  const found = skyhooks?.known === true ? skyhooks.value : []
  const note = skyhooks?.known === false ? skyhooks.why : 'There is no Skyhook.'
  return h('nav', { 'aria-labelledby': 'skyhooks-title' }, [
    h('h2', { id: 'skyhooks-title' }, 'Skyhooks'),
    h('ul', { id: 'skyhooks', role: 'list' }, [
      skyhooks !== undefined && found.length === 0 && h('li', null, note),
      found.map((one) => skyhookItem(one, one.name === chosen, () => onChoose(one.name))),
    ]),
  ])
}

type SkyhooksProperties = {
  readonly skyhooks: PageState['skyhooks'] | undefined
  readonly chosen: string | undefined
  readonly onChoose: (name: string) => void
}

function skyhookItem(skyhook: SkyhookBrief, isChosen: boolean, onClick: () => void): ComponentChild {
  const { name, selected, complete, troubled, flags } = skyhook
  const counts = selected === undefined ? 'nodes unknown' : `${complete} of ${selected}`
  const needingLook = troubled === 0 ? [] : [`${troubled} in trouble`]
  const style = { width: `${selected ? (100 * complete) / selected : 0}%` }
  const filled = h('span', { class: 'paint', 'data-status': 'complete', style })
  return h('li', { key: name }, [
    h('button', { type: 'button', 'aria-current': isChosen ? 'true' : undefined, onClick }, [
      h('span', { class: 'name' }, name),
      h('small', null, [counts, ...needingLook, ...flags].join(', ')),
      h('span', { class: 'bar', 'aria-hidden': true }, filled),
    ]),
  ])
}
