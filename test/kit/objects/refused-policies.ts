/**
 * DeploymentPolicies that the API server refuses: what is wrong with each, its spec, and words of the answer. The real
 * server and the command-line tool are held to the same table.
 */
type Json = Record<string, unknown>

export const pace = { budget: { count: 1 }, strategy: { fixed: {} } }
export const group = (name: string, fields: Json = {}): Json => ({
  name,
  selector: { matchLabels: { zone: name } },
  budget: { percent: 10 },
  ...fields,
})

export const refusedPolicies: readonly [what: string, spec: Json, words: string][] = [
  ['no default', { compartments: [] }, 'spec.default: Required value'],
  [
    'percent and count',
    { default: { ...pace, budget: { percent: 1, count: 1 } } },
    'spec.default.budget: Invalid value: give exactly one of percent and count',
  ],
  [
    'neither percent nor count',
    { default: { ...pace, budget: {} } },
    'spec.default.budget: Invalid value: give exactly one',
  ],
  ['a budget of zero', { default: { ...pace, budget: { count: 0 } } }, 'spec.default.budget.count'],
  [
    'two strategies',
    { default: { ...pace, strategy: { fixed: {}, linear: {} } } },
    'spec.default.strategy: Invalid value: give exactly one of fixed, linear and exponential',
  ],
  ['no strategy', { default: { ...pace, strategy: {} } }, 'spec.default.strategy: Invalid value: give exactly one'],
  [
    'a factor of 1',
    { default: { ...pace, strategy: { exponential: { growthFactor: 1 } } } },
    'spec.default.strategy.exponential.growthFactor',
  ],
  [
    'two compartments of the same name',
    { default: pace, compartments: [group('a'), group('a', { selector: {} })] },
    'spec.compartments[1]: Duplicate value: {"name":"a"}',
  ],
  [
    'two compartments with the same selector',
    { default: pace, compartments: [group('a', { selector: {} }), group('b', { selector: {} })] },
    'spec.compartments: Invalid value: compartments ["a", "b"] have the same selector',
  ],
  [
    'a compartment named __default__',
    { default: pace, compartments: [group('__default__')] },
    'spec.compartments[0].name: Invalid value: "__default__": __default__ stands for the nodes of no compartment',
  ],
  [
    'a compartment without budget',
    { default: pace, compartments: [group('a', { budget: undefined })] },
    'spec.compartments[0].budget: Required value',
  ],
  [
    'maxCount beside count',
    { default: { ...pace, budget: { count: 2, maxCount: 1 } } },
    'spec.default.budget.maxCount: Invalid value: maxCount only caps a percent',
  ],
]
