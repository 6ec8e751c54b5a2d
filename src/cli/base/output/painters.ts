/** The color of screens, on words that have the same meaning without it. */
import { reasons } from '../../../schemas/catalogue/reasons.ts'
import { type Color, type Painter, painted, painterOf } from '../framework/paint.ts'

const ofStatus: Readonly<Record<string, Color>> = {
  complete: 'green',
  'in progress': 'cyan',
  erroring: 'red',
  blocked: 'yellow',
  unknown: 'magenta',
}
const ofMark: Readonly<Record<string, Color>> = { '#': 'green', '+': 'cyan', '!': 'red', x: 'yellow', '?': 'magenta' }
const ofSection = { failing: 'red', blocked: 'yellow', waiting: undefined } as const

/** Of `status`: the bar, the counts, reasons in trouble, and the lines above them. */
export const statusPainter: Painter = (line) => {
  const bar = /(?<=  \[)[#+!x?.]+(?=\])/
  if (line.search(bar) >= 0) return line.replace(bar, (marks) => marks.replaceAll(/([#+!x?])\1*/g, markPainted))
  return restPainter(line)
}

const markPainted = (marks: string): string => painted(ofMark[marks[0] ?? ''] ?? 'bold', marks)

const restPainter = painterOf([
  [/(?<=^ {2})(?:stalled|paused|disabled|being deleted)(?=:|$)/, () => 'red'],
  [/(?<=^ {2}\d+ nodes? )[A-Z][A-Za-z]+/, reasonColor],
  [/(?<=^ {2}.*\d+ )(?:in progress|erroring|blocked|unknown)(?=,|$)/g, (status) => ofStatus[status]],
])

function reasonColor(name: string): Color | undefined {
  const found = Object.entries(reasons).find(([reason]) => reason === name)
  return found === undefined ? undefined : ofSection[found[1].section]
}

/** Of `explain`: what is closed, and what opens it. */
export const explainPainter = painterOf([
  [/(?<=^\w+ +)CLOSED(?= |$)/, () => 'red'],
  [/(?<=^\w+ +)open(?= |$)/, () => 'green'],
  [/(?<=^ *)(?:unblock|run):(?= )/, () => 'bold'],
  [/(?<=^Skyhook .*: )(?:held up|not selected)/, () => 'red'],
  [/(?<=^\d+ nodes? )held up/, () => 'red'],
])

/** Of `doctor`: verdicts, and findings by how bad they are. */
export const doctorPainter = painterOf([
  [/(?<=^(?:\S+)? *)(?:ERROR|error)(?= )/, () => 'red'],
  [/(?<=^(?:\S+)? *)warning(?= )/, () => 'yellow'],
  [/(?<=^\S+ +)ok(?= |$)/, () => 'green'],
  [/(?<=^\S+ +)unknown(?= |$)/, () => 'magenta'],
])
