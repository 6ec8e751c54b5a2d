import { expect, test } from 'vitest'
import { inContext, nodeActions } from './commands.ts'

test.each([
  ['kubectl skyhook resume s', 'kubectl skyhook resume s --context prod'],
  ['kubectl describe node n | grep -A5 Taints', 'kubectl describe node n --context prod | grep -A5 Taints'],
  ['kubectl get a && kubectl get b', 'kubectl get a --context prod && kubectl get b --context prod'],
  ['systemd-inhibit --list # on the host', 'systemd-inhibit --list # on the host'],
])('the command %s names the cluster that the page shows', (command, expected) => {
  expect(inContext(command, 'prod')).toBe(expected)
  expect(inContext(command, undefined)).toBe(command)
})

test('a name with special characters stays one word of the shell', () => {
  expect(inContext('kubectl get x', "a b'c; rm -rf /")).toBe(`kubectl get x --context 'a b'\\''c; rm -rf /'`)
  for (const { command } of nodeActions('s', 'n$(x)')) expect(command).not.toMatch(/[^']n\$\(x\)/)
})
