/**
 * Phrases that comments, messages and pages do not use, and what they use instead (docs/style.md). A space of a pattern
 * stands for any white space. `gap` is what `proseOf` leaves of code in a text.
 */
export const gap = '\0'

type Phrase = { readonly pattern: string; readonly instead: string }

const longerOrSo = 'longer|more|less|fewer|better|worse|later|earlier|one|and|or|but'
const verbs =
  'is|are|was|were|has|have|had|may|must|can|could|might|does|did|became|becomes|changes|comes|fails|follows|' +
  'happens|holds|keeps|lies|listens|looks|makes|needs|relies|runs|starts|takes|talks|uses|waits|wants|works'
const subjects = 'the|a|an|all|any|each|every|its|one|their|these|those|what|which'

export const phrases: Readonly<Record<string, Phrase>> = {
  // not where something goes on a node, or on standard output
  'goes on': {
    pattern: String.raw`\b(?:go|goes|going|went|gone) on\b(?! (?:(?:the|a|an|its)\b|std))`,
    instead: 'continues',
  },
  // not the header of a PEM file
  begun: { pattern: String.raw`(?<!-----)\b(?:begin|begins|began|begun)\b`, instead: 'start, started' },
  anew: { pattern: String.raw`\banew\b`, instead: 'again' },
  'of now': { pattern: String.raw`\bof (?:now|this moment|the moment(?! (?:of|when|in)))\b`, instead: 'current' },
  whoever: { pattern: String.raw`\bwhoever\b`, instead: 'the noun, or "if someone"' },
  // not before what depends on nothing: "whatever its image is"
  whatever: { pattern: String.raw`\b(?:whatever|wherever) (?:${verbs})\b`, instead: 'the noun' },
  // not "there is no Node", and not "is no longer"
  'is no': {
    pattern:
      String.raw`(?<!\bthere (?:(?:still|also|already|will|may|can|must|would|has|have) )?)` +
      String.raw`\b(?:is|are|was|were|be|been) no (?!(?:${longerOrSo})\b)(?=[\w\0])`,
    instead: 'is not a, are not, has no',
  },
  mend: { pattern: String.raw`\bmend(?:s|ed|ing)?\b`, instead: 'fix' },
  'so does': {
    pattern:
      String.raw`\bso (?:do|does|did) (?!not\b|any)|\bnor (?:do|does|did|is|are|was|were|has|have|can|may|must)\b|` +
      String.raw`[.,;:] (?:and )?so (?:is|are|was|were|has|have|can) (?:${subjects})\b`,
    instead: 'the subject first: "X does the same", "as is X"',
  },
  // not "tells apart", "tells one from another", "told to stop"
  told: {
    pattern: String.raw`\b(?:tells|telling|told)\b(?! (?:[\w\0]+ ){0,4}?(?:apart|from|to)\b)`,
    instead: 'reports, shows, reported',
  },
  'says of': { pattern: String.raw`\b(?:say|says|said|saying|tell|hear|hears|heard) of\b`, instead: 'says about' },
  'is to be': { pattern: String.raw`\b(?:is|are|was|were) to be (?=\w)`, instead: 'must be, or "what to do"' },
  // not "and no more", "no more nodes"
  'no more': {
    pattern: String.raw`(?<=[\w)\0] )(?<!\b(?:and|is|are|was|were) )no more(?=\s*[.,;:)\0])`,
    instead: 'no longer',
  },
}

type Found = { readonly phrase: string; readonly words: string; readonly instead: string; readonly at: number }

const patterns = Object.entries(phrases).map(([phrase, { pattern, instead }]) => ({
  phrase,
  instead,
  pattern: new RegExp(pattern.replaceAll(' ', String.raw`\s+`), 'gi'),
}))

/** The phrases in a text, by where they are. */
export function phrasesIn(text: string): Found[] {
  return patterns
    .flatMap(({ phrase, instead, pattern }) =>
      [...text.matchAll(pattern)].map(({ 0: words, index }) => ({
        phrase,
        words: words.replaceAll(gap, '').replaceAll(/\s+/g, ' ').trim(),
        instead,
        at: index,
      })),
    )
    .toSorted((a, b) => a.at - b.at)
}
