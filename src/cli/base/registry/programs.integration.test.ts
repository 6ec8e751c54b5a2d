import { expect, test } from 'vitest'
import { runProgram } from './programs.ts'

const { signal } = new AbortController()

test('a program gets its input and gives its output and exit code', async () => {
  expect(await runProgram('sh', ['-c', 'read a; echo "$a$a"; echo oops >&2; exit 3'], 'hi\n', signal)).toEqual({
    code: 3,
    stdout: 'hihi\n',
    stderr: 'oops\n',
  })
})

test('a program that does not exist is an error', async () => {
  await expect(runProgram('no-such-program-here', [], '', signal)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a program that is no longer waited for is killed', async () => {
  const controller = new AbortController()
  const running = runProgram('sleep', ['600'], '', controller.signal)
  controller.abort()
  await expect(running).rejects.toMatchObject({ name: 'AbortError' })
})
