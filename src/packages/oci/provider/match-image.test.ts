import { expect, test } from 'vitest'
import { matchesImage, parseImagePattern } from './match-image.ts'

const matches = (pattern: string, image: string): boolean | undefined => {
  const parsed = parseImagePattern(pattern)
  return parsed && matchesImage(parsed, image)
}

test.each([
  ['r.example', 'r.example/team/pkg', true],
  ['https://r.example', 'r.example/team/pkg', true],
  ['r.example', 'other.example/team/pkg', false],
  ['r.example', 'a.r.example/pkg', false],
  ['*.example', 'r.example/pkg', true],
  ['*.example', 'a.r.example/pkg', false], // one label for each asterisk
  ['*.*.example', 'a.r.example/pkg', true],
  ['*.dkr.ecr.*.amazonaws.com', '123456789012.dkr.ecr.us-east-1.amazonaws.com/pkg', true],
  ['*.dkr.ecr.*.amazonaws.com.cn', '123456789012.dkr.ecr.us-east-1.amazonaws.com/pkg', false],
  ['reg*.example', 'registry.example/pkg', true],
  ['reg*y.example', 'reg.example/pkg', false],
  ['r.*', 'r.example/pkg', true],
  ['r.ex.mple', 'r.example/pkg', false], // a dot is a dot
  ['*', 'localhost/pkg', true],
  ['r.example:5000', 'r.example:5000/pkg', true],
  ['r.example:5000', 'r.example/pkg', false],
  ['r.example', 'r.example:5000/pkg', false],
  ['r.example:*', 'r.example:5000/pkg', false], // no globs in ports
  ['r.example/team', 'r.example/team/pkg', true],
  ['r.example/team', 'r.example/team-b/pkg', true], // as the kubelet: the start of a path, not of a component
  ['r.example/team/', 'r.example/team-b/pkg', false],
  ['r.example/*', 'r.example/team/pkg', false], // nor in paths
  ['[fd00::1]:5000', '[fd00::1]:5000/pkg', true],
  ['', 'r.example/pkg', undefined],
  ['r.example?x', 'r.example/pkg', undefined],
  ['r example', 'r.example/pkg', undefined],
])('the pattern %j and the image %s match: %j', (pattern, image, expected) => {
  expect(matches(pattern, image)).toBe(expected)
})
