/** The first page of a release's folder. */

/** What lies in the folder, in the order of the page. `docs/usage/install.md` says more of each. */
export const contents: readonly (readonly [names: readonly string[], what: string])[] = [
  [['skyhookd-VERSION.tgz'], 'the chart for helm; [its values](chart/README.md)'],
  [['crds', 'daemonset'], 'the same for `kubectl apply`, without helm'],
  [['overlay'], 'an example: `daemonset` with a pull Secret and settings of your own, for kustomize'],
  [['samples'], 'Skyhooks that complete on any cluster'],
  [['cli'], '`kubectl skyhook`: [how to install it](docs/usage/cli.md#install)'],
  [['gitops'], 'health checks for [Argo CD and Flux](docs/usage/gitops.md)'],
  [['docs', 'chart', 'packages'], 'the [pages](docs/README.md) for this version'],
  [['oci'], 'all images as an OCI layout, for both architectures'],
  [['sbom', 'provenance'], 'what is in each artifact, and how it was made'],
  [['RELEASE-NOTES'], 'what has changed'],
  [['SHA256SUMS'], 'of every other file: `sha256sum --check SHA256SUMS`'],
  [['LICENSE'], 'Apache 2.0'],
]

/** @param prefix registry and path of all images */
export function releaseReadme(version: string, prefix: string): string {
  const chart = `skyhookd-${version}.tgz`
  const rows = contents.map(([names, what]) => {
    const named = names.map((name) => `\`${name.replace('VERSION', version)}\``).join(', ')
    return `| ${named} | ${what} |`
  })
  return `# skyhookd ${version}

A package manager for the hosts of a Kubernetes cluster. You apply a \`Skyhook\`: which nodes, which packages at which
versions, how many nodes may be out at once. One agent per node does the rest for its own node.

Chart and manifests take all images from \`${prefix}\`. If they are not there yet, copy them from the folder
\`oci\`, each with \`skopeo copy --all oci:oci:skyhookd:${version} docker://${prefix}/skyhookd:${version}\`.

## Install

Kubernetes 1.30 or later, and hosts with systemd ([all requirements](docs/usage/install.md#requirements)).

\`\`\`sh
helm install skyhookd ${chart} -n skyhook --create-namespace
kubectl rollout status daemonset/skyhookd -n skyhook
kubectl skyhook doctor
kubectl apply -k samples
kubectl skyhook status
\`\`\`

* \`kubectl skyhook\` is in the folder \`cli\`: [two lines](docs/usage/cli.md#install) install it.
* A registry with a login: [three lines](docs/usage/install.md#a-registry-with-a-login) in place of the first one above.
* Without helm: \`kubectl apply --server-side -f crds\`, then \`kubectl apply -k daemonset\`.
* Something stands still: [operations](docs/usage/operations.md).
* Upgrade and removal: [install](docs/usage/install.md#upgrade).

## What is in this folder

| | |
|---|---|
${rows.join('\n')}
`
}
