/** Rollouts as an SVG drawing for the README: the same rows as the picture of the terminal, in colours. */
import type { Film } from './picture.ts'
import type { NodeState } from './sights.ts'

/** Forges show one file on a light page and the other on a dark one. */
export type Theme = 'light' | 'dark'

const inks: Readonly<Record<Theme, { readonly text: string; readonly faint: string }>> = {
  light: { text: '#1f2328', faint: '#d1d9e0' },
  dark: { text: '#e6edf3', faint: '#3d444d' },
}

/** Told apart by lightness as well, for those who do not see all colours. */
const colours: Readonly<Record<Theme, Readonly<Record<NodeState, string>>>> = {
  light: {
    waiting: '#e4e8ec',
    working: '#7fb2f0',
    cordoned: '#f2cc60',
    drained: '#e08a2e',
    rebooting: '#b02a37',
    complete: '#2f9e58',
  },
  dark: {
    waiting: '#2b3138',
    working: '#3f7fd0',
    cordoned: '#d9b13b',
    drained: '#d97b24',
    rebooting: '#e5646f',
    complete: '#3fa364',
  },
}

const legend: readonly NodeState[] = ['waiting', 'working', 'cordoned', 'drained', 'rebooting', 'complete']

// px
const width = 860
const label = 70
const rowHeight = 22
const bar = 16
const titleHeight = 30
const filmGap = 14
const legendHeight = 34

/** Each rollout with its own time axis, below the one before. */
export function drawing(films: readonly Film[], nodes: readonly string[], theme: Theme): string {
  const filmHeight = titleHeight + nodes.length * rowHeight + filmGap
  const height = films.length * filmHeight + legendHeight
  const { text } = inks[theme]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`,
    ` role="img" font-family="ui-sans-serif, system-ui, sans-serif" font-size="13" fill="${text}">`,
    `<title>${escaped(titleOf(films, nodes))}</title>`,
    ...films.map((film, index) => drawFilm(film, nodes, theme, index * filmHeight)),
    drawLegend(theme, films.length * filmHeight),
    '</svg>',
    '',
  ].join('\n')
}

function titleOf(films: readonly Film[], nodes: readonly string[]): string {
  const skyhooks = films.map(({ rollout }) => rollout.skyhook)
  return `Rollouts of ${skyhooks.join(', ')} on ${nodes.join(', ')}, time from left to right`
}

function drawFilm(film: Film, nodes: readonly string[], theme: Theme, top: number): string {
  const { skyhook, budget, startedMs, endedMs } = film.rollout
  const seconds = ((endedMs - startedMs) / 1000).toFixed(1)
  const heading = `${skyhook}: ${seconds} s, at most ${budget} at a time`
  return [
    `<text x="0" y="${top + 19}" font-weight="600">${escaped(heading)}</text>`,
    ...nodes.flatMap((node, row) => {
      const y = top + titleHeight + row * rowHeight
      return [`<text x="0" y="${y + 13}">${escaped(node)}</text>`, ...drawRow(film, row, theme, y)]
    }),
  ].join('\n')
}

/** One rectangle for each span in which the node was in one state. */
function drawRow(film: Film, row: number, theme: Theme, y: number): string[] {
  const { startedMs, endedMs } = film.rollout
  const scale = (width - label) / Math.max(endedMs - startedMs, 1)
  return spansOf(film, row).map(({ state, fromMs, untilMs }) => {
    const x = label + (fromMs - startedMs) * scale
    const span = Math.max((untilMs - fromMs) * scale, 1)
    const place = `x="${x.toFixed(1)}" y="${y}" width="${span.toFixed(1)}" height="${bar}"`
    return `<rect ${place} fill="${colours[theme][state]}"><title>${state}</title></rect>`
  })
}

type Span = { readonly state: NodeState; readonly fromMs: number; readonly untilMs: number }

/** Without gaps, from the start of the rollout to its end. */
export function spansOf({ rollout, sights }: Film, row: number): Span[] {
  const spans: Span[] = []
  for (const [index, { atMs, states }] of sights.entries()) {
    const state = states[row]
    const untilMs = Math.min(sights[index + 1]?.atMs ?? rollout.endedMs, rollout.endedMs)
    if (state === undefined || untilMs <= atMs) continue
    const last = spans.at(-1)
    if (last?.state === state) spans[spans.length - 1] = { ...last, untilMs }
    else spans.push({ state, fromMs: atMs, untilMs })
  }
  return spans
}

function drawLegend(theme: Theme, top: number): string {
  const step = (width - label) / legend.length
  const line = `<path d="M0 ${top + 2}H${width}" stroke="${inks[theme].faint}"/>`
  const entries = legend.map((state, index) => {
    const x = label + index * step
    const box = `<rect x="${x.toFixed(1)}" y="${top + 13}" width="12" height="12" fill="${colours[theme][state]}"/>`
    return `${box}<text x="${(x + 18).toFixed(1)}" y="${top + 24}">${state}</text>`
  })
  return [line, ...entries].join('\n')
}

const escaped = (text: string): string => text.replaceAll(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
