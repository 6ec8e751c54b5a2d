/** What the demo plays, one after another. A sample is a Skyhook of test/fixtures/skyhooks with what it needs and what is to be seen. */
export type Sample = {
  /** File in test/fixtures/skyhooks. */
  readonly file: string
  readonly title: string
  /** Folder in test/fixtures/packages and the name it is pushed under. */
  readonly packages: readonly (readonly [folder: string, name: string])[]
  /** Labels of the nodes that it selects; all nodes of the sandbox get them. */
  readonly labels: Readonly<Record<string, string>>
  /** Most slots that may ever be held at once. */
  readonly budget: number
  /** Longer than this it takes only when something is wrong. */
  readonly withinMs: number
  /** Files on each host that it writes. */
  readonly files: readonly string[]
}

export const samples: readonly Sample[] = [
  {
    file: 'demo.yaml',
    title: 'a package of four small scripts, on three nodes, one node at a time',
    packages: [['shellscript', 'skyhook-packages/shellscript:1.1.0']],
    labels: { 'skyhook.nvidia.com/test-node': 'demo' },
    budget: 1,
    withinMs: 60_000,
    files: ['/etc/skyhook-greeting'],
  },
]
