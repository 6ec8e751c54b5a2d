/** What an edit of the Skyhook would do, in the words of `kubectl skyhook plan`. */
import { h, type ComponentChild } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { EditPlan } from '../page-data.ts'
import { ask } from './requests.ts'
import { messageOf } from '../../../schemas/json.ts'

const liveHint =
  "Nothing is applied: the API server is asked by a dry run, and the agents' decisions are made on the nodes as they " +
  'are.'
const archivedHint =
  'Nothing is applied, and no API server is asked: the tool checks its rules, and the decisions of the agents are ' +
  'made on the nodes as they were. What the text lacks of the spec would be removed. [left-out] stands for values ' +
  'that the archive does not have: keep it where a value stays.'

type Properties = {
  /** Whose spec may be taken. */
  readonly skyhook: string | undefined
  readonly isLive: boolean
}

export function Plan({ skyhook, isLive }: Properties): ComponentChild {
  const text = useRef<HTMLTextAreaElement>(null)
  const [outcome, setOutcome] = useState('')
  const [result, setResult] = useState('')
  const [isPlanning, setIsPlanning] = useState(false)

  async function load(): Promise<void> {
    if (skyhook === undefined) return
    const answer = await ask<{ readonly text: string }>('api/manifest', { skyhook })
    if (text.current !== null) text.current.value = answer.text
    const present = isLive ? 'as it is now' : 'as it is in the archive'
    setOutcome(`This is ${skyhook} ${present}. Edit it, then show the plan.`)
  }

  async function show(): Promise<void> {
    setIsPlanning(true)
    setOutcome('Planning …')
    setResult('')
    try {
      const plan = await ask<EditPlan>('api/plan', {}, { text: text.current?.value })
      setOutcome(verdictOf(plan))
      setResult(plan.text)
    } finally {
      setIsPlanning(false)
    }
  }

  const reporting = (act: () => Promise<void>) => (): void =>
    void act().catch((error: unknown) => setOutcome(messageOf(error)))
  const [onLoad, onShow] = [reporting(load), reporting(show)]
  return h('section', { 'aria-labelledby': 'plan-title' }, [
    h('h2', { id: 'plan-title' }, 'Plan of an edit'),
    h('details', { id: 'plan' }, [
      h('summary', null, 'What would an edit of this Skyhook do?'),
      h('p', { id: 'plan-hint', class: 'hint' }, isLive ? liveHint : archivedHint),
      h('label', { for: 'plan-text' }, 'Skyhook as YAML'),
      h('textarea', { ref: text, id: 'plan-text', rows: 16, spellcheck: false, autocomplete: 'off' }),
      h('div', { class: 'buttons' }, [
        h('button', { type: 'button', id: 'plan-load', onClick: onLoad }, [
          isLive ? 'Take the present spec' : 'Take the spec of the archive',
        ]),
        h('button', { type: 'button', id: 'plan-show', class: 'primary', disabled: isPlanning, onClick: onShow }, [
          'Show the plan',
        ]),
      ]),
      h('p', { id: 'plan-outcome', role: 'status' }, outcome),
      h('pre', { id: 'plan-result', class: 'output', role: 'region', 'aria-label': 'Plan', tabIndex: 0 }, result),
    ]),
  ])
}

function verdictOf({ isRefused, disrupts }: EditPlan): string {
  if (isRefused) return 'It would be refused.'
  if (disrupts === undefined) return 'Whether nodes would be disrupted is unknown.'
  return disrupts ? 'Nodes would be disrupted.' : 'No node would be disrupted.'
}
