/**
 * Lint rule: an effect that outlives the agent goes through one of the few functions that pass a failpoint
 * (src/host/fs/failpoint.ts). Everything that could make an effect without a name is refused outside of its home.
 */
import { type Context, importedName, type Node, nameOf, productPath } from './syntax.ts'

/** What may be used only in its homes, and what to use elsewhere. */
type Home = { readonly files: RegExp; readonly instead: string }

const durable: Home = {
  files: /src\/host\/fs\/fsync\.ts$/,
  instead: 'wait for the disk by syncOpenFile, syncFile or syncFolder of src/host/fs/fsync.ts',
}
const process: Home = {
  files:
    /src\/(packages\/store\/unpack-child|daemon\/platform\/census-process|cli\/base\/connection\/exec-plugin|cli\/base\/registry\/programs|cli\/package\/run\/supervisor)\.ts$/,
  instead: 'run what has effects as a unit of the host (src/host/systemd/units.ts)',
}

/** Names that a module may import from another one. */
const imports: readonly { readonly from: RegExp; readonly names: RegExp; readonly home: Home }[] = [
  { from: /^(node:)?fs(\/promises)?$/, names: /^(fsync|fdatasync)(Sync)?$/, home: durable },
  { from: /^(node:)?child_process$/, names: /./, home: process },
  {
    from: /\/transport\.ts$/,
    names: /^createKubeTransport$/,
    home: {
      files: /src\/(daemon\/platform\/platform|daemon\/census\/process|cli\/.*)\.ts$/,
      instead: 'take the Transport that src/daemon/platform/platform.ts made',
    },
  },
  {
    from: /dbus\/connection\.ts$/,
    names: /^connectSystemBus$/,
    home: {
      files: /src\/host\/dbus\/reconnecting\.ts$/,
      instead: 'take the BusConnection that src/daemon/platform/platform.ts made',
    },
  },
  {
    from: /^(node:)?https?$/,
    names: /^(request|get|default|\*)$/,
    home: {
      files: /src\/(kube\/transport|kube\/exchange|packages\/oci\/read\/http|daemon\/telemetry\/probe)\.ts$/,
      instead: 'go through src/kube/transport.ts or the registry client',
    },
  },
]
/** Members, whatever they belong to. */
const members: readonly { readonly name: RegExp; readonly home: Home }[] = [
  { name: /^(sync|datasync|fsync|fsyncSync|fdatasync|fdatasyncSync)$/, home: durable },
]
const options: readonly { readonly name: RegExp; readonly home: Home }[] = [{ name: /^flush$/, home: durable }]

const named = {
  create(context: Context) {
    const file = productPath(context.filename)
    if (!file) return {}
    const refuse = (node: Node, what: string, { files, instead }: Home): void => {
      if (!files.test(file))
        context.report({ node, message: `${what} makes an effect without a failpoint: ${instead}` })
    }
    return {
      ImportDeclaration(node: Node) {
        if (node['importKind'] === 'type') return
        const from = nameOf(node['source'])
        for (const specifier of node['specifiers'] as Node[]) {
          if (specifier['importKind'] === 'type') continue
          const name = importedName(specifier)
          const found = imports.find((one) => one.from.test(from) && one.names.test(name))
          if (found) refuse(specifier, `${name} of ${from}`, found.home)
        }
      },
      MemberExpression(node: Node) {
        const name = nameOf(node['property'])
        const found = members.find((one) => one.name.test(name))
        if (found) refuse(node, `.${name}`, found.home)
      },
      Property(node: Node) {
        const name = nameOf(node['key'])
        const found = options.find((one) => one.name.test(name))
        if (found && (node['value'] as Node | undefined)?.['value'] === true)
          refuse(node, `the option ${name}`, found.home)
      },
    }
  },
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'effects' }, rules: { named } }
