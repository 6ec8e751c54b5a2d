import { expect, test } from 'vitest'
import { matchLength } from './image-pattern.ts'

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
  ['r.ex.mple', 'r.example/pkg', false], // a dot is literal
  ['*', 'localhost/pkg', true],
  ['r.example:5000', 'r.example:5000/pkg', true],
  ['r.example:5000', 'r.example/pkg', false],
  ['r.example', 'r.example:5000/pkg', false],
  ['r.example:*', 'r.example:5000/pkg', false], // no globs in ports
  ['r.example/team', 'r.example/team/pkg', true],
  ['r.example/team', 'r.example/team-b/pkg', true], // as in the kubelet: a prefix of the path, not of a component
  ['r.example/team/', 'r.example/team-b/pkg', false],
  ['r.example/*', 'r.example/team/pkg', false], // nor in paths
  ['[fd00::1]:5000', '[fd00::1]:5000/pkg', true],
  ['', 'r.example/pkg', false],
])('the pattern %j of a kubelet and the image %s match: %j', (pattern, image, expected) => {
  expect(matchLength(pattern, 'matchImages', image) > 0).toBe(expected)
})

test.each([
  ['r.example/team', 'r.example/team/pkg', 'r.example/team'],
  ['r.example/team', 'r.example/team-b/pkg', ''],
  ['reg*.example', 'registry.example/pkg', 'registry.example'],
  ['*.example', 'a.r.example/pkg', ''],
  ['r.example', 'r.example:5000/pkg', ''],
])('the key %j of a pull Secret covers of the image %s: %j', (pattern, image, expected) => {
  expect(image.slice(0, matchLength(pattern, 'dockerConfig', image))).toBe(expected)
})

test.each([
  ['*.example', 'a.r.example/team/pkg', 'a.r.example'],
  ['*.example/team', 'r.example/team/pkg', 'r.example/team'],
  ['*.example', 'example/pkg', ''],
  ['*.example', 'r.example/a.example/pkg', 'r.example'], // the shortest match
  ['*', 'r.example/pkg', ''],
  ['a*.example', 'ab.example/pkg', ''],
  ['r.example/team', 'r.example/team-b/pkg', ''],
])('the prefix %j of registries.conf covers of %s %j', (pattern, image, expected) => {
  expect(image.slice(0, matchLength(pattern, 'registriesConf', image))).toBe(expected)
})
