import { describe, expect, test } from 'vitest'
import { parseChallenges } from './auth.ts'

describe('WWW-Authenticate', () => {
  test.each([
    ['Basic realm="lab"', [{ scheme: 'basic', params: { realm: 'lab' } }]],
    [
      'Bearer realm="https://auth.example/token",service="r",scope="repository:a/b:pull,push"',
      [
        {
          scheme: 'bearer',
          params: { realm: 'https://auth.example/token', service: 'r', scope: 'repository:a/b:pull,push' },
        },
      ],
    ],
    [
      'BASIC realm=lab , Bearer Realm = "x" ,error="a \\"b\\""',
      [
        { scheme: 'basic', params: { realm: 'lab' } },
        { scheme: 'bearer', params: { realm: 'x', error: 'a "b"' } },
      ],
    ],
    [
      'Negotiate, Basic realm="a, b=c"',
      [
        { scheme: 'negotiate', params: {} },
        { scheme: 'basic', params: { realm: 'a, b=c' } },
      ],
    ],
    ['', []],
    ['realm="without a scheme"', []],
  ])('the challenges of %s are read', (header, expected) => {
    expect(parseChallenges(header)).toEqual(expected)
  })

  test.each([' ', ',', 'a ', '"', 'a=', '\\'])('a megabyte of %j takes no longer than its length', (part) => {
    const challenges = parseChallenges(`Basic realm=x ${part.repeat(2 ** 20)}`)
    expect(challenges[0]).toMatchObject({ scheme: 'basic' })
  })
})
