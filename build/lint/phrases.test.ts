import { expect, test } from 'vitest'
import { phrases, phrasesIn } from './phrases.ts'

type Row = { readonly refused: readonly string[]; readonly allowed: readonly string[] }

const rows: Readonly<Record<keyof typeof phrases, Row>> = {
  'goes on': {
    refused: ['The step goes on.', 'a rollout that goes on with the next node', 'It may go on after that'],
    allowed: ['what goes on the Node', 'It goes on stdout', 'an ongoing rollout', 'The step continues.'],
  },
  begun: {
    refused: ['work that has begun', 'The name begins with a dot', 'Begin with doctor'],
    allowed: ['the beginning of the file', '-----BEGIN PRIVATE KEY-----', 'the stage has started'],
  },
  anew: { refused: ['starts anew'], allowed: ['starts again', 'a new start'] },
  'of now': {
    refused: ['the budget of now', 'a LIST of this moment', 'ages are those of the moment'],
    allowed: ['at this moment', 'by the state of the moment when it started', 'the current budget'],
  },
  whoever: { refused: ['Whoever may write Skyhooks', 'ask whoever set it'], allowed: ['If someone asks', 'who asks'] },
  whatever: {
    refused: ['Whatever waits takes a signal', 'wherever is room', 'they hide whatever is left'],
    allowed: ['one at a time, whatever the budget', 'whatever its clocks show', 'from wherever you start it'],
  },
  'is no': {
    refused: ['It is no Node', 'files that are no\n packages', 'That was no reboot', 'is no \0', 'can be no slot'],
    allowed: [
      'There is no Node',
      'if there\nare no packages',
      'there may be no answer',
      'there has been no count',
      'It is no longer ours',
      'they are no more than five',
      'The answer is no.',
      'It has no Node',
    ],
  },
  mend: { refused: ['mend it', 'is mended'], allowed: ['recommended', 'an amendment', 'fix it'] },
  'so does': {
    refused: ['It stays. So does the cordon', 'it ends, nor does it wait', 'kept, and so is each slot', 'so do they'],
    allowed: [
      'is not seen, and so does not count',
      'so do not edit it',
      'neither read nor kept',
      'full, so is left out',
    ],
  },
  told: {
    refused: ['what agents have told', 'The unit tells how it ended', 'worth telling'],
    allowed: ['cannot be told apart', 'tells one edit from another', 'is told to stop', 'nobody can tell'],
  },
  'says of': {
    refused: ['what the spec says of steps', 'what is said of it', 'agents tell of it'],
    allowed: ['what the spec says about steps', 'essays of engineers'],
  },
  'is to be': {
    refused: ['what is to be done', 'files that are to be\nwritten'],
    allowed: ['the status as it is to be.', 'must be written', 'has to be read'],
  },
  'no more': {
    refused: ['The Skyhook selects it no more.', 'joins no more\0'],
    allowed: ['no more than five', 'no more nodes wait', '50, and no more.', 'There is no more.'],
  },
}

test.each(Object.entries(rows))('"%s" is found in each sentence with it, and in no allowed one', (name, row) => {
  const found = (text: string): string[] => phrasesIn(text).map(({ phrase }) => phrase)
  expect(row.refused.map((text) => [text, found(text)])).toEqual(row.refused.map((text) => [text, [name]]))
  expect(row.allowed.map((text) => [text, found(text)])).toEqual(row.allowed.map((text) => [text, []]))
})

test('each phrase has sentences that are refused and sentences that are allowed', () => {
  expect(Object.keys(rows).toSorted()).toEqual(Object.keys(phrases).toSorted())
})

test('a phrase is reported where it stands, in its own words', () => {
  expect(phrasesIn('A file that\n is no Node.')).toEqual([
    { phrase: 'is no', words: 'is no', instead: phrases['is no']?.instead, at: 13 },
  ])
})
