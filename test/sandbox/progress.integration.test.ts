import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

type Part = readonly [chain: string, plannedSeconds: number, began: number | '-', ended: number | '-', name: string]

/** At second 1,000. */
function textOf(parts: readonly Part[], shown = ''): string {
  const script = 'CACHE=/nonexistent; . "$0"; progress_text 1000 "$1"'
  const input = parts.map((part) => `${part.join(' ')}\n`).join('')
  return execFileSync('bash', ['-c', script, join(import.meta.dirname, 'progress.sh'), shown], {
    encoding: 'utf8',
    input,
  }).trim()
}

const cases: readonly (readonly [title: string, text: string, parts: readonly Part[], shown?: string])[] = [
  [
    'nothing that has begun leaves all of the plan',
    'building, part 0 of 2, about 6 min left',
    [
      ['main', 240, '-', '-', 'helm'],
      ['main', 120, '-', '-', 'etcd'],
    ],
  ],
  [
    'parts that went as planned leave the rest of the plan',
    'building etcd, part 2 of 3, about 4 min left',
    [
      ['main', 300, 660, 960, 'helm'],
      ['main', 100, 960, '-', 'etcd'],
      ['main', 180, '-', '-', 'kubelet'],
    ],
  ],
  [
    'parts that took twice as long double the rest',
    'building etcd, part 2 of 2, about 9 min left',
    [
      ['main', 3000, -5000, 1000, 'helm'],
      ['main', 270, 1000, '-', 'etcd'],
    ],
  ],
  [
    'a first part that took a second promises little',
    'building helm, part 2 of 2, about 5 min left',
    [
      ['main', 30, 999, 1000, 'Debian packages'],
      ['main', 450, 1000, '-', 'helm'],
    ],
  ],
  [
    'chains side by side take as long as the longest, whose part is shown',
    'building base disk, part 2 of 2, about 5 min left',
    [
      ['base', 300, 1000, '-', 'base disk'],
      ['main', 240, 1000, '-', 'helm'],
    ],
  ],
  [
    'a part that begins is shown by itself',
    'building helm, part 2 of 2, about 5 min left',
    [
      ['base', 300, 1000, '-', 'base disk'],
      ['main', 240, 1000, '-', 'helm'],
    ],
    'helm',
  ],
  [
    'a part that should have ended takes a tenth more',
    'building helm, part 1 of 1, about 1 min left',
    [['main', 60, 400, '-', 'helm']],
  ],
  [
    'a part that another process has built says nothing about the others',
    'building etcd, part 2 of 2, about 5 min left',
    [
      ['main', 300, 1000, 1000, 'helm'],
      ['main', 300, 1000, '-', 'etcd'],
    ],
  ],
  [
    'the last seconds are less than a minute',
    'building kube-controller-manager, part 1 of 1, less than a minute left',
    [['main', 62, 960, '-', 'kube-controller-manager']],
  ],
]

for (const [title, text, parts, shown] of cases)
  test(`progress of a build: ${title}`, () => {
    expect(textOf(parts, shown)).toBe(text)
    expect(text.length).toBeLessThan(80)
  })
