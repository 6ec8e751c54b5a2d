import { expect, test } from 'vitest'
import { withExamples } from './readme-examples.ts'

const commands = ['kubectl skyhook plan -f tuning.yaml', 'kubectl skyhook explain tuning']
const block = (command: string, answer: string): string => `\`\`\`console\n$ ${command}\n${answer}\n\`\`\`\n`

test('the blocks of the README hold what the tool answers, and the text around them stays', () => {
  const page = `before\n${commands.map((command) => block(command, 'old\nlines')).join('between\n')}after\n`
  const filled = withExamples(page, (file) => `answer of ${file}\n`)
  const [plan = '', explain = ''] = commands
  const [planned, explained] = [
    block(plan, 'answer of readme-plan.txt'),
    block(explain, 'answer of readme-explain.txt'),
  ]
  expect(filled).toBe(`before\n${planned}between\n${explained}after\n`)
})

test('a README without the block of a command is an error', () => {
  expect(() => withExamples('text\n', () => '')).toThrow(`README.md lacks a console block with "$ ${commands[0]}"`)
})
