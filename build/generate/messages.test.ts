import { expect, test } from 'vitest'
import { messagesIn, messagesList } from './messages.ts'

const source = `
const name = 'two words'
export const first = 'the disk is full: ' + amountOf(bytes) + ' of it are \`used\`'
export const second = \`node \${node.name} has \${count === 1 ? 'one of the pods' : 'some'} left\`
export const script = '# a script of its own\\nexit 1'
`

test('a message is a literal of three words or more on one line, with names for what is put in', () => {
  expect(messagesIn('src/lease/slot.ts', source)).toEqual([
    'the disk is full: {bytes} of it are `used`',
    'node {name} has {…} left',
    'one of the pods',
  ])
})

test('the list has the messages of a part once, and in alphabetical order', () => {
  const list = messagesList([
    { path: 'src/lease/slot.ts', text: "say('zone of the node')\nsay('zone of the node')" },
    { path: 'src/cli/main.ts', text: 'say(1)' },
    { path: 'src/lease/rule.ts', text: "say('a_b is not there')" },
    { path: 'src/cli/reason/plan/plan-text.ts', text: "say('nothing would be changed')" },
  ])
  expect(list.split('\n').slice(3)).toEqual([
    'src/lease',
    '  a_b is not there',
    '  zone of the node',
    '',
    'src/cli/reason',
    '  nothing would be changed',
    '',
  ])
})
