import { listAll } from '../../../kube/list.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { readable } from '../../fleet-view/readable.ts'

type Options = { readonly query?: Readonly<Record<string, string>>; readonly accept?: string }

/** Lists a collection and keeps what `transform` makes of its objects. `what`: as `readable` names it. */
export type SomeOf = <U>(
  what: string,
  path: string,
  transform: (object: never) => U | undefined,
  options?: Options,
) => Promise<Known<readonly U[]>>

export const someOf =
  (transport: KubeTransport, signal: AbortSignal): SomeOf =>
  async <U>(what: string, path: string, transform: (object: never) => U | undefined, options: Options = {}) =>
    await readable(
      what,
      listAll<never, { readonly kept: U | undefined }>(transport, path, {
        ...options,
        signal,
        transform: (object) => ({ kept: transform(object) }),
      }).then(({ items }) => items.flatMap(({ kept }) => (kept === undefined ? [] : [kept]))),
    )
