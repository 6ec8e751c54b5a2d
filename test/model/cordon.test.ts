import { describe, expect, test } from 'vitest'
import {
  cordonAfterExternalChange,
  cordonFor,
  uncordonFor,
  type CordonChange,
  type CordonState,
} from '../../src/stages/drain/cordon-ownership.ts'

/**
 * Two Skyhooks and an administrator on one node: every interleaving of their writes, breadth first over all states. The
 * oracle is what the administrator last asked for. Each agent writes under a resourceVersion, so a step sees the
 * current state.
 */
type Model = {
  readonly unschedulable: boolean
  readonly marks: readonly string[]
  readonly before: boolean | null
  readonly keep: boolean
  /** The last value of `unschedulable` that the agent saw. */
  readonly lastSeen: boolean
  /** Skyhooks that have not started, and those that are working. */
  readonly todo: readonly string[]
  readonly working: readonly string[]
  readonly desired: boolean
  readonly cordonsLeft: number
  readonly uncordonsLeft: number
  readonly keepsLeft: number
}

type CordonRules = {
  readonly cordon: typeof cordonFor
  readonly uncordon: typeof uncordonFor
  readonly observe: typeof cordonAfterExternalChange
}

const names = ['a', 'b']
const stateOf = ({ unschedulable, marks, before, keep }: Model): CordonState => ({
  unschedulable,
  marks: new Set(marks),
  before: before ?? undefined,
  keep,
})

function applyChange(model: Model, change: CordonChange | undefined): Model {
  if (!change) return model
  const marks = model.marks.filter((mark) => mark !== change.removeMark)
  if (change.addMark) marks.push(change.addMark)
  const unschedulable = change.unschedulable ?? model.unschedulable
  return {
    ...model,
    unschedulable,
    lastSeen: unschedulable,
    marks: marks.sort(),
    before: change.before === undefined ? model.before : change.before,
  }
}

function next(model: Model, rules: CordonRules): [string, Model][] {
  const moves: [string, Model][] = []
  // the agent looks at every version of its own Node before it does anything else
  if (model.lastSeen !== model.unschedulable) {
    const observed = applyChange(model, rules.observe(model.lastSeen, stateOf(model)))
    return [['agent sees the change', { ...observed, lastSeen: observed.unschedulable }]]
  }
  for (const name of names) {
    const without = (list: readonly string[]): string[] => list.filter((item) => item !== name)
    if (model.todo.includes(name)) {
      const cordoned = applyChange(model, rules.cordon(name, stateOf(model)))
      moves.push([
        `${name} cordons`,
        { ...cordoned, todo: without(model.todo), working: [...model.working, name].sort() },
      ])
    }
    if (!model.working.includes(name)) continue
    if (!model.unschedulable)
      moves.push([`${name} cordons again`, applyChange(model, rules.cordon(name, stateOf(model)))])
    else
      moves.push([
        `${name} finishes`,
        { ...applyChange(model, rules.uncordon(name, stateOf(model))), working: without(model.working) },
      ])
  }
  if (model.cordonsLeft > 0 && !model.unschedulable)
    moves.push([
      'administrator cordons',
      { ...model, unschedulable: true, desired: true, cordonsLeft: model.cordonsLeft - 1 },
    ])
  if (model.uncordonsLeft > 0 && model.unschedulable)
    moves.push([
      'administrator uncordons',
      { ...model, unschedulable: false, desired: false, keep: false, uncordonsLeft: model.uncordonsLeft - 1 },
    ])
  if (model.keepsLeft > 0 && model.marks.length > 0)
    moves.push(['administrator marks it keep-cordoned', { ...model, keep: true, desired: true, keepsLeft: 0 }])
  return moves
}

/** The first violation on a shortest path, or the number of states visited. */
function search(rules: CordonRules): { readonly states: number; readonly violation?: string } {
  const start: Model = {
    unschedulable: false,
    marks: [],
    before: null,
    keep: false,
    lastSeen: false,
    todo: ['a', 'b'],
    working: [],
    desired: false,
    cordonsLeft: 2,
    uncordonsLeft: 2,
    keepsLeft: 1,
  }
  const paths = new Map<string, string>([[JSON.stringify(start), '']])
  const queue = [start]
  for (let model = queue.shift(); model; model = queue.shift()) {
    const path = paths.get(JSON.stringify(model)) ?? ''
    const isSettled = model.todo.length === 0 && model.working.length === 0 && model.lastSeen === model.unschedulable
    if (isSettled && model.unschedulable !== model.desired && !(model.keep && model.unschedulable))
      return { states: paths.size, violation: `${model.desired ? 'lost' : 'kept'} cordon: ${path}` }
    if (model.marks.length === 0 && model.before !== null)
      return { states: paths.size, violation: `memory left behind: ${path}` }
    for (const [move, following] of next(model, rules)) {
      const key = JSON.stringify(following)
      if (paths.has(key)) continue
      paths.set(key, path === '' ? move : `${path}; ${move}`)
      queue.push(following)
    }
  }
  return { states: paths.size }
}

const agentRules: CordonRules = { cordon: cordonFor, uncordon: uncordonFor, observe: cordonAfterExternalChange }

describe('cordon ownership', () => {
  test('a node always ends cordoned or uncordoned as its administrator last asked', () => {
    const { states, violation } = search(agentRules)
    expect(violation).toBeUndefined()
    expect(states).toBeGreaterThan(200)
  })

  test.each<[string, Partial<CordonRules>, string]>([
    ['ignores changes while it holds the cordon', { observe: () => undefined }, 'cordon'],
    [
      'keeps what it remembered when it cordons again',
      {
        cordon: (name, state) => {
          const change = cordonFor(name, state)
          return change && state.before !== undefined ? { ...change, before: state.before } : change
        },
        observe: () => undefined,
      },
      'cordon',
    ],
    [
      'forgets what was before',
      { uncordon: (name, state) => uncordonFor(name, { ...state, before: false }) },
      'lost cordon',
    ],
    [
      'ignores keep-cordoned',
      { uncordon: (name, state) => uncordonFor(name, { ...state, keep: false }) },
      'lost cordon',
    ],
    [
      'uncordons when the first Skyhook finishes',
      {
        uncordon: (name, state) =>
          state.marks.has(name) ? { removeMark: name, before: null, unschedulable: state.before === true } : undefined,
      },
      '',
    ],
  ])('the search catches a rule that %s', (_, mutation, expected) => {
    expect(search({ ...agentRules, ...mutation }).violation).toContain(expected)
  })
})
