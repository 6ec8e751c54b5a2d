import { expect, test } from 'vitest'
import { reasonCodes } from '../../../schemas/catalogue/reason-codes.ts'
import { type ReasonName, reasons } from '../../../schemas/catalogue/reasons.ts'
import { type ReasonContext, reasonFinding } from './reason-finding.ts'

const contextOf = (image: string, rest: Partial<ReasonContext> = {}): ReasonContext => ({
  skyhook: {
    metadata: { name: 'tuning', uid: 'u', resourceVersion: '1' },
    spec: { packages: { kernel: { image, version: '1.0.0' } } },
  },
  node: { metadata: { name: 'n1', uid: 'n', resourceVersion: '1' } },
  namespace: 'agents',
  record: undefined,
  sinceMs: undefined,
  preceding: undefined,
  packageName: 'kernel',
  ...rest,
})
const context = contextOf('registry.test:5000/kernel')

const names = Object.keys(reasons) as ReasonName[]

test.each(names)('the finding of %s names no variable and has no link', (reason) => {
  const { unblock, command } = reasonFinding({ reason, message: 'why' }, { ...context, preceding: 'first' })
  expect([unblock, command].filter((text) => text === '' || /\$|\]\(|`/.test(text))).toEqual([])
})

test.each(Object.entries(reasonCodes))('the code %s has its own remedy and command', (code, { remedy }) => {
  const reason = { reason: 'ImagePull', message: 'why', code: code as keyof typeof reasonCodes } as const
  const found = reasonFinding(reason, context)
  expect([found.cause, found.unblock]).toEqual(['image-pull', remedy])
  expect(found.command).not.toMatch(/\$[A-Z]/)
})

test.each([
  ['registry.test:5000/kernel', 'https://registry.test:5000/v2/'],
  ['busybox', 'https://registry-1.docker.io/v2/'],
])('if the registry of %s is unreachable, the command asks %s', (image, address) => {
  const { command } = reasonFinding({ reason: 'ImagePull', message: '', code: 'unreachable' }, contextOf(image))
  expect(command).toBe(`curl -sS ${address} # on the host`)
})

test('an option whose value is not known is left out of the command', () => {
  const { command } = reasonFinding({ reason: 'InternalError', message: '' }, { ...context, packageName: undefined })
  expect(command).toBe('kubectl skyhook logs tuning --node n1')
})

test('an error in the spec of a package is one of the package, and any other one of the Skyhook', () => {
  const reason = { reason: 'InvalidSpec', message: 'why' } as const
  const found = [context, { ...context, packageName: undefined }].map((one) => reasonFinding(reason, one))
  expect(found.map(({ gate, objects: [first] }) => [gate, first?.kind])).toEqual([
    ['package', 'Package'],
    ['spec', 'Skyhook'],
  ])
})
