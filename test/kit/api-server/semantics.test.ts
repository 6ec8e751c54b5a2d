import { expect, test } from 'vitest'
import { semanticsScript, runSemantics } from './semantics-script.ts'
import { simulatedWire } from './simulated-wire.ts'

test('the simulated API server answers every request of the script as the script says', async () => {
  const entries = await runSemantics(simulatedWire())
  const answered = Object.fromEntries(entries.map(({ title, summary }) => [title, summary]))
  expect(answered).toEqual(Object.fromEntries(semanticsScript.map(({ title, expected }) => [title, expected])))
  expect(entries).toHaveLength(semanticsScript.length)
})
