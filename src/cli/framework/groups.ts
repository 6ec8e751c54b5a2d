/** First words that group commands. */
export const groups: Readonly<Record<string, { readonly summary: string; readonly aliases: readonly string[] }>> = {
  node: { summary: 'show and change single nodes', aliases: ['nodes'] },
  package: { summary: 'show, repeat, check and build packages', aliases: ['packages'] },
  'deployment-policy': { summary: 'control the batches of a DeploymentPolicy', aliases: ['dp'] },
}
