import { describe, expect, test } from 'vitest'
import {
  type CordonChange,
  type CordonState,
  cordonAfterExternalChange,
  cordonFor,
  uncordonFor,
} from '../../src/stages/drain/node-spec.ts'
import { search, type SearchResult, type Transition } from './breadth-first.ts'

/**
 * Two Skyhooks and an administrator on one node: every interleaving of their writes. The oracle is what the
 * administrator last asked for. Each agent writes under a resourceVersion, so a step sees the current state.
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

function* next(model: Model, rules: CordonRules): Generator<Transition<Model>> {
  // the agent looks at every version of its own Node before it does anything else
  if (model.lastSeen !== model.unschedulable) {
    const observed = applyChange(model, rules.observe(model.lastSeen, stateOf(model)))
    return yield { action: 'agent sees the change', to: { ...observed, lastSeen: observed.unschedulable } }
  }
  for (const name of names) yield* agentMoves(model, name, rules)
  if (model.cordonsLeft > 0 && !model.unschedulable)
    yield {
      action: 'administrator cordons',
      to: { ...model, unschedulable: true, desired: true, cordonsLeft: model.cordonsLeft - 1 },
    }
  if (model.uncordonsLeft > 0 && model.unschedulable)
    yield {
      action: 'administrator uncordons',
      to: { ...model, unschedulable: false, desired: false, keep: false, uncordonsLeft: model.uncordonsLeft - 1 },
    }
  if (model.keepsLeft > 0 && model.marks.length > 0)
    yield { action: 'administrator marks it keep-cordoned', to: { ...model, keep: true, desired: true, keepsLeft: 0 } }
}

function* agentMoves(model: Model, name: string, rules: CordonRules): Generator<Transition<Model>> {
  const { todo, working } = model
  const without = (list: readonly string[]): string[] => list.filter((item) => item !== name)
  const cordoned = applyChange(model, rules.cordon(name, stateOf(model)))
  if (todo.includes(name))
    yield { action: `${name} cordons`, to: { ...cordoned, todo: without(todo), working: [...working, name].sort() } }
  else if (working.includes(name) && !model.unschedulable) yield { action: `${name} cordons again`, to: cordoned }
  else if (working.includes(name)) {
    const uncordoned = applyChange(model, rules.uncordon(name, stateOf(model)))
    yield { action: `${name} finishes`, to: { ...uncordoned, working: without(working) } }
  }
}

function violationIn(model: Model): string | undefined {
  const { unschedulable, desired, keep, marks, before } = model
  const isSettled = model.todo.length === 0 && model.working.length === 0 && model.lastSeen === unschedulable
  if (isSettled && unschedulable !== desired && !(keep && unschedulable)) return desired ? 'lost cordon' : 'kept cordon'
  return marks.length === 0 && before !== null ? 'memory left behind' : undefined
}

const explore = (rules: CordonRules): SearchResult =>
  search<Model>({
    initial: {
      unschedulable: false,
      marks: [],
      before: null,
      keep: false,
      lastSeen: false,
      todo: names,
      working: [],
      desired: false,
      cordonsLeft: 2,
      uncordonsLeft: 2,
      keepsLeft: 1,
    },
    *next(model) {
      for (const { action, to } of next(model, rules)) yield { action, to, violation: violationIn(to) }
    },
    keyOf: (model) => JSON.stringify(model),
  })

const agentRules: CordonRules = { cordon: cordonFor, uncordon: uncordonFor, observe: cordonAfterExternalChange }

describe('cordon ownership', () => {
  test('a node always ends cordoned or uncordoned as its administrator last asked', () => {
    expect(explore(agentRules)).toEqual({ outcome: 'holds', states: 504 })
  })

  test.each<[string, Partial<CordonRules>, violation: string]>([
    ['ignores changes while it holds the cordon', { observe: () => undefined }, 'lost cordon'],
    [
      'keeps what it remembered when it cordons again',
      {
        cordon: (name, state) => {
          const change = cordonFor(name, state)
          return change && state.before !== undefined ? { ...change, before: state.before } : change
        },
        observe: () => undefined,
      },
      'lost cordon',
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
      'lost cordon',
    ],
  ])('the search catches a rule that %s', (_, mutation, violation) => {
    expect(explore({ ...agentRules, ...mutation })).toMatchObject({ outcome: 'violated', violation })
  })
})
