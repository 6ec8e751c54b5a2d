/** What an edit of the Skyhook would do, in the words of `kubectl skyhook plan`. */
import type { EditPlan } from '../page-data.ts'
import { byId, setText } from './dom.ts'
import { shownArchive } from './identity-view.ts'
import { ask } from './requests.ts'
import { messageOf } from '../../../schemas/json.ts'

export function startPlan(skyhook: () => string | undefined): void {
  const text = byId('plan-text') as HTMLTextAreaElement
  const outcome = byId('plan-outcome')
  const result = byId('plan-result')
  byId('plan-load').addEventListener('click', () => {
    const name = skyhook()
    if (name === undefined) return
    ask<{ readonly text: string }>('api/manifest', { skyhook: name }).then(
      (answer) => {
        text.value = answer.text
        const present = shownArchive() === undefined ? 'as it is now' : 'as it is in the archive'
        setText(outcome, `This is ${name} ${present}. Edit it, then show the plan.`)
      },
      (error: unknown) => setText(outcome, messageOf(error)),
    )
  })
  const button = byId('plan-show') as HTMLButtonElement
  button.addEventListener('click', () => {
    button.disabled = true
    setText(outcome, 'Planning …')
    setText(result, '')
    ask<EditPlan>('api/plan', {}, { text: text.value })
      .then((plan) => {
        setText(outcome, verdictOf(plan))
        setText(result, plan.text)
      })
      .catch((error: unknown) => setText(outcome, messageOf(error)))
      .finally(() => (button.disabled = false))
  })
}

function verdictOf({ isRefused, disrupts }: EditPlan): string {
  if (isRefused) return 'It would be refused.'
  if (disrupts === undefined) return 'Whether nodes would be disrupted is unknown.'
  return disrupts ? 'Nodes would be disrupted.' : 'No node would be disrupted.'
}
