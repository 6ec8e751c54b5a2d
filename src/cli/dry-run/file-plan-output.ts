/** Formats the plan of a file for people and for programs. Pure. */
import { envelope } from '../output/print.ts'
import { planItem } from '../plan/plan-document.ts'
import { planText } from '../plan/plan-text.ts'
import { markdown, terminal, type TextForm } from '../plan/text-form.ts'
import { closedNodes, wouldDisrupt } from '../plan/skyhook-plan.ts'
import type { FilePlan } from './plan-file.ts'
import type { RehearsedWrite } from './rehearsed-write.ts'
import { named } from '../../schemas/wording.ts'

const maxOthers = 6

export function filePlanText(
  { writes, plans, others, disrupts, isRefused }: FilePlan,
  how: 'text' | 'markdown',
): string {
  const form = how === 'markdown' ? markdown : terminal
  const objects = writes.map((write) => form.heading(headlineOf(write)) + form.list(writeLines(write)))
  const blocks = plans.map((plan) => form.heading(`Nodes of Skyhook ${plan.skyhook}`) + planText(plan, form))
  const closed = new Set(plans.flatMap(closedNodes)).size
  const verdict = isRefused
    ? 'Refused: nothing would be done.'
    : disrupts === undefined
      ? 'Whether nodes would be disrupted is unknown.'
      : disrupts
        ? 'Nodes would be disrupted.'
        : closed > 0
          ? `No node would be disrupted, and ${closed} would be closed for new pods.`
          : 'No node would be disrupted.'
  const unplanned =
    others.length === 0 ? '' : form.heading('Not planned') + form.list([`agents ignore ${named(others, maxOthers)}`])
  return [...objects, ...blocks, unplanned, closing(form, verdict)].join('')
}

const closing = (form: TextForm, verdict: string): string => (form === markdown ? `**${verdict}**\n` : `${verdict}\n`)

const headlineOf = ({ kind, name, change }: RehearsedWrite): string =>
  change === 'unchanged' ? `${kind} ${name} would not change` : `${kind} ${name} would be ${change}`

function writeLines({ fields, admission, change }: RehearsedWrite): readonly string[] {
  const { checkedBy, why, refusals, warnings } = admission
  const checked =
    checkedBy === 'server'
      ? refusals.length > 0
        ? []
        : ['the API server accepts it (dry run)']
      : checkedBy === 'tool'
        ? [`the API server was not asked, ${why ?? ''}: checked by the rules of this version`]
        : change === 'unchanged'
          ? []
          : [why ?? '']
  return [
    ...refusals.map((text) => `REFUSED: ${text}`),
    ...checked,
    ...warnings.map((text) => `warning: ${text}`),
    ...fields.map(({ field, change: how, before, after }) => {
      const values = [before, after].flatMap((value) => (value === undefined ? [] : JSON.stringify(value))).join(' -> ')
      return `${how} ${field}${values === '' ? '' : `: ${values}`}`
    }),
  ]
}

/** An envelope with the result, the changed objects, and the plan of each Skyhook. */
export const filePlanDocument = ({ writes, plans, others, isRefused, disrupts }: FilePlan): object => ({
  ...envelope(
    'Plan',
    plans.map((plan) => planItem(plan, wouldDisrupt(plan))),
  ),
  refused: isRefused,
  disrupts: disrupts ?? null,
  objects: writes.map(({ kind, name, change, fields, admission }) => ({ kind, name, change, fields, admission })),
  unplanned: others,
})
